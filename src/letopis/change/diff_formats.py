"""A difference as people and programs read it: unified, by words, by characters, links, JSON, side by side; and as
bytes, which `letopis patch` applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from blake3 import blake3

from letopis.change.sequence import Op
from letopis.change.text_diff import (
    CHARACTERS,
    WORDS,
    DiffBounds,
    DiffLevel,
    DiffPiece,
    diff_pieces,
    line_ops,
    split_lines,
)
from letopis.errors import Damaged, DocumentTooLarge, NewerFormat, Remedy, UsageError
from letopis.model import Change, Link, LinkType, Page
from letopis.tuples import NamedTuple
from letopis.zstandard import (
    CompressionParameter,
    DecompressionParameter,
    ZstdCompressor,
    ZstdDecompressor,
    ZstdDict,
    ZstdError,
)


class LinkChanges(NamedTuple):
    """Links by target and type, in document order; a link that only moved is in neither list."""

    added: tuple[Link, ...]
    removed: tuple[Link, ...]


def link_changes(old: Page, new: Page) -> LinkChanges:
    """The links of `new` that `old` has not, and those it had and lost; repeats count once."""
    before = {(link.target, link.type): link for link in reversed(old.links)}
    after = {(link.target, link.type): link for link in reversed(new.links)}
    added = {key: after[key] for key in _link_keys(new) if key not in before}
    removed = {key: before[key] for key in _link_keys(old) if key not in after}
    return LinkChanges(tuple(added.values()), tuple(removed.values()))


def _link_keys(page: Page) -> list[tuple[str, LinkType]]:
    return [(link.target, link.type) for link in page.links]


def link_diff(old: Page, new: Page) -> str:
    """One line a link: sign, type, target, text; empty when none came or went."""
    changes = link_changes(old, new)
    lines = [_link_line("-", link) for link in changes.removed] + [_link_line("+", link) for link in changes.added]
    return "".join(lines)


def _link_line(sign: str, link: Link) -> str:
    text = " ".join(link.text.split())
    return f"{sign} {link.type} {link.target}" + (f"  {text}" if text else "") + "\n"


_EQUAL_SHOWN = 160
_CONTEXT = 3
"""Equal lines around a change."""


def unified_diff(old: str, new: str, old_name: str = "old", new_name: str = "new") -> str:
    """The difference as `patch` reads it; empty when there is none."""
    before, after = split_lines(old), split_lines(new)
    ops = line_ops(before, after)
    if all(op.tag == "equal" for op in ops):
        return ""
    out = [f"--- {_one_line(old_name)}\n", f"+++ {_one_line(new_name)}\n"]
    for hunk in _hunks(ops):
        out += _hunk(hunk, before, after)
    return "".join(out)


def _hunks(ops: Sequence[Op]) -> Iterator[list[Op]]:
    """Changes in groups with some equal lines around; groups that would touch are one."""
    group: list[Op] = []
    for n, op in enumerate(ops):
        if op.tag != "equal":
            group.append(op)
            continue
        size = op.a2 - op.a1
        last = n == len(ops) - 1
        if group and (size > 2 * _CONTEXT or last):
            yield [*group, _head(op, min(size, _CONTEXT))]
            group = []
        if not last:
            group.append(_tail(op, min(size, _CONTEXT)) if not group else op)
    if any(op.tag != "equal" for op in group):
        yield group


def _head(op: Op, size: int) -> Op:
    return Op("equal", op.a1, op.a1 + size, op.b1, op.b1 + size)


def _tail(op: Op, size: int) -> Op:
    return Op("equal", op.a2 - size, op.a2, op.b2 - size, op.b2)


def _hunk(group: list[Op], before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_range(first.a1, last.a2)} +{_range(first.b1, last.b2)} @@\n"
    for op in group:
        if op.tag == "equal":
            yield from (_hunk_line(" ", line) for line in before[op.a1 : op.a2])
        else:
            yield from (_hunk_line("-", line) for line in before[op.a1 : op.a2])
            yield from (_hunk_line("+", line) for line in after[op.b1 : op.b2])


def _hunk_line(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _range(start: int, stop: int) -> str:
    size = stop - start
    if size == 1:
        return str(start + 1)
    return f"{start + 1 if size else start},{size}"


def _one_line(name: str) -> str:
    return " ".join(name.split())


def word_diff(old: str, new: str) -> str:
    """The new text with removed words as `[-...-]` and added ones as `{+...+}`; long equal parts cut."""
    return _inline(old, new, WORDS)


def char_diff(old: str, new: str) -> str:
    """The same, marked to the character."""
    return _inline(old, new, CHARACTERS)


def _inline(old: str, new: str, level: DiffLevel) -> str:
    found = diff_pieces(old, new, level)
    if all(piece.tag == "equal" for piece in found):
        return ""
    last = len(found) - 1
    text = "".join(_marked(piece, n == 0, n == last) for n, piece in enumerate(found))
    return text if text.endswith("\n") else text + "\n"


def _marked(piece: DiffPiece, first: bool, last: bool) -> str:
    if piece.tag == "equal":
        return _cut(piece.new, first, last)
    return (f"[-{piece.old}-]" if piece.old else "") + (f"{{+{piece.new}+}}" if piece.new else "")


def _cut(text: str, first: bool, last: bool) -> str:
    """Equal text shortened to what stands near a change, at line ends."""
    if len(text) <= 2 * _EQUAL_SHOWN:
        return text
    head = "" if first else text[:_EQUAL_SHOWN].rsplit("\n", 1)[0]
    tail = "" if last else text[-_EQUAL_SHOWN:].split("\n", 1)[-1]
    return f"{head}\n...\n{tail}" if not first else f"...\n{tail}"


_LEVEL_NAMES: dict[DiffLevel, str] = {1: "lines", 2: "words", 3: "characters"}


def diff_as_json(
    old: str, new: str, level: DiffLevel = WORDS, pages: tuple[Page, Page] | None = None, change: Change | None = None
) -> dict[str, object]:
    """Operations with texts and positions, link changes and the verdict, ready for `json.dumps`.

    Positions count characters. Equal runs give their length only; the sum of
    all runs is the whole text. `coarse` tells that bounds cut the depth.
    """
    bounds = DiffBounds()
    operations: list[dict[str, object]] = []
    at_old = at_new = 0
    for piece in diff_pieces(old, new, level, bounds):
        entry: dict[str, object] = {"op": piece.tag, "old": [at_old, at_old + len(piece.old)]}
        at_old, at_new = at_old + len(piece.old), at_new + len(piece.new)
        entry["new"] = [at_new - len(piece.new), at_new]
        if piece.tag != "equal":
            entry |= {"removed": piece.old, "added": piece.new}
        operations.append(entry)
    result: dict[str, object] = {"level": _LEVEL_NAMES[level], "coarse": bounds.coarse, "operations": operations}
    if pages:
        changes = link_changes(*pages)
        result["links"] = {"added": [_link(x) for x in changes.added], "removed": [_link(x) for x in changes.removed]}
    if change:
        result |= _verdict(change)
    return result


def _link(link: Link) -> dict[str, str]:
    return {"target": link.target, "type": str(link.type), "text": link.text}


def _verdict(change: Change) -> dict[str, object]:
    blocks = [{"action": b.action, "kind": str(b.kind), "text": b.text} for b in change.blocks]
    return {
        "same_bytes": change.same_bytes,
        "same_text": change.same_text,
        "meaningful": change.meaningful,
        "score": change.score,
        "verdict": change.verdict,
        "reason": change.reason,
        "muted": [{"why": b.why, "text": b.text} for b in change.muted],
        "blocks": blocks,
    }


_MOST_ROWS = 4000
_MOST_LINE = 20_000
_STYLE = """
:root{color-scheme:light dark;--line:#ddd;--gone:#fdecec;--came:#e8f6e8;--del:#f4b6b6;--ins:#a9dfa9;
--dim:#5f6368;--ground:#fff;--text:#1a1a1a}
@media (prefers-color-scheme:dark){:root{--line:#444;--gone:#3a1d1f;--came:#16301c;--del:#7c2d31;--ins:#226b34;
--dim:#a5a9ad;--ground:#17191b;--text:#e8e8e8}}
body{margin:0;padding:1rem;font:15px/1.45 system-ui,sans-serif;background:var(--ground);color:var(--text)}
h1{font-size:1.2rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;table-layout:fixed;min-width:40rem}
caption{text-align:left;color:var(--dim);padding-bottom:.5rem}
col.n{width:4rem}
th,td{border:1px solid var(--line);padding:.15rem .4rem;vertical-align:top;text-align:left}
tbody th{font-weight:400;color:var(--dim);text-align:right}
td{white-space:pre-wrap;overflow-wrap:anywhere;font-family:ui-monospace,monospace;font-size:.85rem}
td.gone{background:var(--gone)}td.came{background:var(--came)}
del{background:var(--del);color:inherit}ins{background:var(--ins);color:inherit}
.skip td{color:var(--dim);text-align:center;font-family:inherit}
"""


def side_by_side_html(
    old: str, new: str, old_name: str = "old", new_name: str = "new", title: str = "Difference"
) -> str:
    """A whole page with both texts in columns, changed words marked, equal stretches folded.

    Everything that comes from the texts is escaped. At most 4000 rows are shown; the page says so when there are more.
    """
    bounds = DiffBounds()
    before, after = split_lines(old), split_lines(new)
    ops = line_ops(before, after, bounds)
    rows = list(_first(_rows(ops, before, after, bounds)))
    added = sum(op.b2 - op.b1 for op in ops if op.tag != "equal")
    removed = sum(op.a2 - op.a1 for op in ops if op.tag != "equal")
    said = f"{removed} lines removed, {added} lines added." if added or removed else "There is no difference."
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{_STYLE}</style></head><body><main><h1>{escape(title)}</h1>"
        f'<div class="scroll" role="region" aria-label="{escape(title)}" tabindex="0"><table><caption>{said}</caption>'
        '<colgroup><col class="n"><col><col class="n"><col></colgroup>'
        f'<thead><tr><th scope="col">Line</th><th scope="col">{escape(old_name)}</th>'
        f'<th scope="col">Line</th><th scope="col">{escape(new_name)}</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></main></body></html>\n"
    )


def _first(rows: Iterator[str]) -> Iterator[str]:
    for n, row in enumerate(rows):
        if n == _MOST_ROWS:
            yield _skip(f"Only the first {_MOST_ROWS} rows are shown.")
            return
        yield row


def _rows(ops: Sequence[Op], before: Sequence[str], after: Sequence[str], bounds: DiffBounds) -> Iterator[str]:
    for n, op in enumerate(ops):
        if op.tag == "equal":
            yield from _equal(op, after, first=n == 0, last=n == len(ops) - 1)
        else:
            yield from _changed(op, before, after, bounds)


def _equal(op: Op, after: Sequence[str], first: bool, last: bool) -> Iterator[str]:
    size = op.a2 - op.a1
    head = 0 if first else _CONTEXT
    tail = 0 if last else _CONTEXT
    hidden = range(head, size - tail) if size > head + tail + 1 else range(0)
    for k in range(size):
        if k == hidden.start and hidden:
            yield _skip(f"{len(hidden)} equal lines")
        if k not in hidden:
            cell = _escaped(after[op.b1 + k])
            yield _row(op.a1 + k, cell, "", op.b1 + k, cell, "")


def _changed(op: Op, before: Sequence[str], after: Sequence[str], bounds: DiffBounds) -> Iterator[str]:
    for k in range(max(op.a2 - op.a1, op.b2 - op.b1)):
        a, b = op.a1 + k, op.b1 + k
        if a < op.a2 and b < op.b2:
            left, right = _pair(before[a], after[b], bounds)
            yield _row(a, left, "gone", b, right, "came")
        elif a < op.a2:
            yield _row(a, f"<del>{_escaped(before[a])}</del>", "gone", None, "", "")
        else:
            yield _row(None, "", "", b, f"<ins>{_escaped(after[b])}</ins>", "came")


def _pair(old: str, new: str, bounds: DiffBounds) -> tuple[str, str]:
    """Two lines with the words that differ marked, or marked whole when they are long or time is up."""
    if len(old) + len(new) > _MOST_LINE or bounds.late():
        return f"<del>{_escaped(old)}</del>", f"<ins>{_escaped(new)}</ins>"
    found = diff_pieces(old.rstrip("\n"), new.rstrip("\n"), WORDS, DiffBounds(max(0.0, bounds.left()), 1 << 22))
    return "".join(_side(p, True) for p in found), "".join(_side(p, False) for p in found)


def _side(piece: DiffPiece, old: bool) -> str:
    text = escape(piece.old if old else piece.new)
    if piece.tag == "equal" or not text:
        return text
    return f"<del>{text}</del>" if old else f"<ins>{text}</ins>"


def _escaped(line: str) -> str:
    text = line.rstrip("\n")
    return escape(text if len(text) <= _MOST_LINE else text[:_MOST_LINE] + " ...")


def _row(a: int | None, left: str, left_class: str, b: int | None, right: str, right_class: str) -> str:
    return f"<tr>{_cells(a, left, left_class)}{_cells(b, right, right_class)}</tr>"


def _cells(number: int | None, text: str, css: str) -> str:
    attribute = f' class="{css}"' if css else ""
    return f'<th scope="row">{"" if number is None else number + 1}</th><td{attribute}>{text}</td>'


def _skip(text: str) -> str:
    return f'<tr class="skip"><td colspan="4">{text}</td></tr>'


# As bytes:
#
#     file    = "LTPD" (4)  version 1 (1)  method (1)  digest of old (32)  digest of new (32)
#               size of new (8, little endian)  payload
#     method  = 0 the new file as it is, 1 the new file compressed alone, 2 compressed with the old file as its past
#
# Digests are BLAKE3. The payload of methods 1 and 2 is one zstd frame; for method 2 the old file is its raw dictionary.
# The smallest of the three is kept.

_MAGIC = b"LTPD"
_VERSION = 1
_HEADER_SIZE = 4 + 1 + 1 + 32 + 32 + 8
STORED, ALONE, PATCH = 0, 1, 2
_ZSTD_LEVEL = 12
_MOST_WINDOW = 27  # 128 MiB
MAX_BYTES = 1 << 30
_SMALLEST_DICTIONARY = 8


class DeltaHeader(NamedTuple):
    """The header of a delta."""

    method: int
    old_digest: bytes
    new_digest: bytes
    size: int


def make_binary_delta(old: bytes, new: bytes) -> bytes:
    """A difference from which `apply_binary_delta` makes `new` again, given `old`."""
    forms = [(STORED, new), (ALONE, _compressed(new, b""))]
    if len(old) >= _SMALLEST_DICTIONARY:
        forms.append((PATCH, _compressed(new, old)))
    method, payload = min(forms, key=lambda form: len(form[1]))
    digests = blake3(old).digest() + blake3(new).digest()
    return _MAGIC + bytes([_VERSION, method]) + digests + len(new).to_bytes(8, "little") + payload


def read_delta_header(delta: bytes) -> DeltaHeader:
    """The header; Damaged or NewerFormat when these bytes are no difference that we can read."""
    if len(delta) < _HEADER_SIZE or delta[:4] != _MAGIC:
        raise Damaged(
            "this file is not a binary difference",
            Remedy("diff URL --format binary", "letopis.Archive.diff(format='binary')", "make one with"),
        )
    if delta[4] > _VERSION:
        raise NewerFormat("this difference was written by a later release of Letopis; update Letopis to apply it")
    if delta[4] != _VERSION or delta[5] not in (STORED, ALONE, PATCH):
        raise Damaged("the header of this difference is damaged; make the difference again")
    return DeltaHeader(delta[5], delta[6:38], delta[38:70], int.from_bytes(delta[70:78], "little"))


def apply_binary_delta(old: bytes, delta: bytes, max_bytes: int = MAX_BYTES) -> bytes:
    """The new file, checked by its digest; never more than `max_bytes` are made."""
    header = read_delta_header(delta)
    if blake3(old).digest() != header.old_digest:
        raise UsageError("this difference was made for another old file; apply it to the file it was made from")
    if header.size > max_bytes:
        raise DocumentTooLarge(
            f"the patched file would have {header.size} bytes, more than {max_bytes}; raise the limit"
        )
    payload = delta[_HEADER_SIZE:]
    new = (
        payload
        if header.method == STORED
        else _decompressed(payload, old if header.method == PATCH else b"", header.size)
    )
    if len(new) != header.size or blake3(new).digest() != header.new_digest:
        raise Damaged("this difference is damaged: its result has the wrong digest; make the difference again")
    return new


def _compressed(data: bytes, past: bytes) -> bytes:
    window = min(_MOST_WINDOW, max(17, (len(data) + len(past)).bit_length()))
    options: dict[int, int] = {
        CompressionParameter.compression_level: _ZSTD_LEVEL,
        CompressionParameter.window_log: window,
        CompressionParameter.enable_long_distance_matching: int(bool(past)),
        CompressionParameter.checksum_flag: 0,
    }
    prefix = ZstdDict(past, is_raw=True).as_prefix if past else None
    compressor = ZstdCompressor(options=options, zstd_dict=prefix)
    return compressor.compress(data, ZstdCompressor.FLUSH_FRAME)


def _decompressed(payload: bytes, past: bytes, size: int) -> bytes:
    prefix = ZstdDict(past, is_raw=True).as_prefix if past else None
    try:
        decoder = ZstdDecompressor(zstd_dict=prefix, options={DecompressionParameter.window_log_max: _MOST_WINDOW})
        new = decoder.decompress(payload, max_length=size + 1)
    except (ZstdError, EOFError) as error:
        raise Damaged(f"this difference is damaged ({error}); make the difference again") from None
    if not decoder.eof or decoder.unused_data:
        raise Damaged("this difference is damaged: it ends at the wrong place; make the difference again")
    return new
