"""Charsets: pages in every one of the WHATWG list, declared by the server, by the page, and not at all."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tries import Score, compared

from letopis.extract.charsets import CHARSET_OF_LABEL, declared_charset, decode, find_charset, python_codec

SAMPLES = Path(__file__).with_name("charsets.tsv")
"""A charset and a sentence or two in a language that is written in it."""
_UNGUESSED = ("utf-16le", "utf-16be", "x-user-defined", "iso-2022-jp")
"""Nobody guesses these without a declaration or a mark."""
# html5lib is older than two rules of the standard, on sets of one's own and on a slash behind `<meta`.
HEADS = (
    b"<meta charset=windows-1250>",
    b"<META CHARSET='Windows-1253'>",
    b'<meta charset = "koi8-r" >',
    b"<meta http-equiv=content-type content='text/html; charset=iso-8859-7'>",
    b"<meta content='text/html; charset=shift_jis' http-equiv='Content-Type'>",
    b"<meta http-equiv='Content-Type' content='text/html;charset = \"euc-kr\"'>",
    b"<meta name=description content='charset=koi8-r'>",
    b"<meta content='text/html; charset=koi8-r'>",
    b"<!-- <meta charset=koi8-r> --><meta charset=big5>",
    b"<!-- a > b --><meta charset=big5>",
    b"<title>a</title><meta charset=gb2312>",
    b"<a title='<meta charset=koi8-r>'><meta charset=euc-jp>",
    b"<meta charset=nonsense><meta charset=windows-1257>",
    b"<meta charset=utf-16>",
    b"<meta charset=utf-16be>",
    b"<meta charset>",
    b"<meta charset=''>",
    b"<metadata charset=koi8-r>",
    b"<meta\tcharset=latin1>",
    b"<meta charset=iso-8859-9 charset=koi8-r>",
    b"<meta http-equiv=refresh content='0; charset=koi8-r'>",
    b"<p>charset=koi8-r</p>",
    b"</meta charset=koi8-r><meta charset=windows-1256>",
    b"<meta charset=&quot;koi8-r&quot;>",
    b"<!doctype html><html lang=el><head><meta charset=greek>",
    b"plain text",
)
_JUDGE = """
import json, sys
from html5lib._inputstream import HTMLBinaryInputStream
from webencodings import lookup
from webencodings.labels import LABELS
heads = [bytes.fromhex(one) for one in json.load(sys.stdin)]
found = []
for head in heads:
    stream = HTMLBinaryInputStream(head, useChardet=False, default_encoding="utf-8")
    encoding, certainty = stream.detectEncodingMeta(), ""
    found.append(encoding.name if encoding else "")
print(json.dumps({"labels": LABELS, "heads": found}))
"""


def _page(text: str, label: str) -> str:
    meta = f"<meta charset={label}>" if label else ""
    return f"<!doctype html><html><head>{meta}<title>x</title></head><body><p>{text}</p></body></html>"


def _encoded(text: str, charset: str) -> bytes:
    if charset == "x-user-defined":
        return bytes(ord(char) if char < "\x80" else ord(char) - 0xF700 for char in text)
    return text.encode(python_codec(charset))


def _readings() -> Iterator[tuple[str, str, str]]:
    """A question, what is read, what was written."""
    for number, line in enumerate(SAMPLES.read_text("utf-8").splitlines()):
        charset, _, text = line.partition("\t")
        name, page, bare = f"text {number + 1} in {charset}", _page(text, charset), _page(text, "")
        yield f"{name}, declared by the server", decode(_encoded(bare, charset), charset).text, bare
        if charset not in ("utf-16le", "utf-16be", "x-user-defined"):
            yield f"{name}, declared by the page", decode(_encoded(page, charset)).text, page
        if charset not in _UNGUESSED:
            yield f"{name}, not declared", decode(_encoded(bare, charset)).text, bare


def _labels() -> Iterator[tuple[str, str, str]]:
    for label, charset in CHARSET_OF_LABEL.items():
        yield f"label {label}", find_charset(f" {label.upper()}\n"), charset


def quick(_: Path) -> Score:
    asked = [*_readings(), *_labels()]
    return compared({name: ours for name, ours, _ in asked}, {name: right for name, _, right in asked})


def full(folder: Path, environment: Path) -> Score:
    """Labels and declarations as webencodings and html5lib read them, besides the texts."""
    sent = json.dumps([head.hex() for head in HEADS])
    told = subprocess.run(
        [environment / "bin" / "python", "-c", _JUDGE], input=sent, capture_output=True, text=True, check=True
    )
    judged = json.loads(told.stdout)
    ours: dict[str, object] = {f"label {label}": find_charset(label) for label in judged["labels"]}
    theirs: dict[str, object] = {f"label {label}": name for label, name in judged["labels"].items()}
    ours |= {f"head {head!r}": declared_charset(head) for head in HEADS}
    theirs |= {f"head {head!r}": name for head, name in zip(HEADS, judged["heads"], strict=True)}
    texts = list(_readings())
    ours |= {name: read for name, read, _ in texts}
    return compared(ours, theirs | {name: right for name, _, right in texts})
