"""PostScript: the structured comments at its start. Its text would need an interpreter."""

from __future__ import annotations

import re

from letopis.extract.dates import read_date
from letopis.extract.draft import Draft
from letopis.extract.source import Source

_COMMENT = re.compile(rb"^%%(Title|For|CreationDate|Pages):[ \t]*(.{1,400}?)\r?$", re.MULTILINE)


def read(source: Source, draft: Draft) -> None:
    """Reads title, author and date; a warning says that the text was left."""
    found = {name: value.decode("latin-1").strip(" ()") for name, value in _COMMENT.findall(source.body[: 64 * 1024])}
    draft.head(title=found.get(b"Title", ""), description=found.get(b"For", ""))
    draft.published = read_date(found.get(b"CreationDate", ""))
    draft.warn("PostScript is read for its title only")
