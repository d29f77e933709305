"""Catalogues of translated texts: gettext's PO files, read as they are at the start."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from letopis.errors import Damaged

_LINE = re.compile(r'(msgid|msgid_plural|msgstr|msgstr\[(\d)\])?\s*("(?:[^"\\]|\\.)*")')


class Catalogue(NamedTuple):
    """What one language calls our texts; `plurals` has all forms of a text with a number."""

    texts: dict[str, str]
    plurals: dict[tuple[str, str], tuple[str, ...]]


def read_catalogue(path: Path) -> Catalogue:
    """A PO file; the entry of the empty text, its header, is left out."""
    found = Catalogue({}, {})
    for entry in _entries(path):
        if entry.get("msgid_plural"):
            forms = tuple(entry[name] for name in sorted(entry) if name.startswith("msgstr["))
            found.plurals[entry["msgid"], entry["msgid_plural"]] = forms
        elif entry.get("msgid"):
            found.texts[entry["msgid"]] = entry["msgstr"]
    return found


def _entries(path: Path) -> Iterator[dict[str, str]]:
    entry: dict[str, str] = {}
    part = ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        found = _LINE.fullmatch(text)
        if found is None or not (found[1] or part):
            raise Damaged(f"line {number} of {path.name} is no line of a PO file; install Letopis again")
        if found[1] == "msgid" and entry:
            yield entry
            entry = {}
        part = found[1] or part
        entry[part] = entry.get(part, "") + ast.literal_eval(found[3])
    if entry:
        yield entry
