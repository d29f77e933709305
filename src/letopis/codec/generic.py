"""The dictionary of any HTML page, which needs no samples: what page makers everywhere write alike.

`html.txt` is its text and `html-stream.txt` the stored form in base64. Data
encoded with it lives in archives, so neither file may ever change: a better
text becomes a further dictionary with ids of its own.
"""

from __future__ import annotations

from base64 import b64decode
from functools import cache
from importlib.resources import files

from letopis.codec.dictionary import Dictionary


@cache
def html_dictionary() -> Dictionary:
    """The generic dictionary for HTML."""
    stored = files("letopis.codec").joinpath("html-stream.txt").read_text("ascii")
    return Dictionary.from_bytes(b64decode(stored))
