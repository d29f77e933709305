"""Style sheets: the addresses they name."""

from __future__ import annotations

import re
from itertools import chain, islice

from letopis.extract.draft import Draft
from letopis.extract.source import Source
from letopis.model import LinkType

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
# Both begin with plain characters: the search then runs at the speed of memory.
_URL = re.compile(r"""url\(\s*(?:"([^"\n]{0,8192})"|'([^'\n]{0,8192})'|([^"'()\s]{1,8192}))\s*\)""")
_IMPORT = re.compile(r"""@import\s+(?:"([^"\n]{1,8192})"|'([^'\n]{1,8192})')""")
_MOST = 10_000


def css_refs(text: str) -> list[str]:
    """The references of a style sheet, imports first; embedded data left out."""
    if "/*" in text:
        text = _COMMENT.sub(" ", text)
    matches = islice(chain(_IMPORT.finditer(text), _URL.finditer(text)), _MOST)
    found = (next(filter(None, match.groups()), "") for match in matches)
    return [ref for ref in found if ref and not ref.startswith("data:")]


def read(source: Source, draft: Draft) -> None:
    """Reads a style sheet: its links, no text."""
    decoded = source.decoded()
    draft.charset = decoded.charset
    for ref in css_refs(decoded.text):
        draft.link(ref, LinkType.CSS)
