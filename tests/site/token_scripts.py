"""Differences between two lists of tokens, as the writer of frames makes them."""

from letopis.store.solid import frame_format
from letopis.store.solid.alignment import TokenTable, aligned_runs, encode_script


def script_between(base: list[bytes], version: list[bytes], ends: bytes) -> bytes:
    """The operations from one list of tokens to another; both end with a newline, the last token of every form."""
    forms = [frame_format.join_tokens(tokens) for tokens in (base, version)]
    table = TokenTable(forms, ends)
    return encode_script(aligned_runs(*table.ids), forms[1] + b"\n", table.offsets(1), len(base))
