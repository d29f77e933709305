"""How files of captures, and the records in them that are ours alone, are called."""

from __future__ import annotations

CHECK_TYPE = "application/vnd.letopis.check+json"
"""Of metadata records that hold what WARC has no field for."""
ENDINGS = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")


def is_warc_name(name: str) -> bool:
    """Whether a name says WARC or ARC."""
    return name.endswith(ENDINGS)


def is_cdxj(address: str) -> bool:
    """Whether a name says that it is an index."""
    return address.partition("?")[0].endswith((".cdxj", ".cdx", ".cdxj.txt"))
