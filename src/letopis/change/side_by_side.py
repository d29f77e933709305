"""Two texts side by side as one HTML page: no script, no outside file, readable in dark and light."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from letopis.change.sequence import Op
from letopis.change.text_diff import WORDS, Bounds, Piece, line_ops, lines_of, pieces

_CONTEXT = 3
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
    old: str,
    new: str,
    old_name: str = "old",
    new_name: str = "new",
    title: str = "Difference",
    bounds: Bounds | None = None,
) -> str:
    """A whole page with both texts in columns, changed words marked, equal stretches folded.

    Everything that comes from the texts is escaped. At most 4000 rows are
    shown; the page says so when there are more.
    """
    bounds = bounds or Bounds()
    before, after = lines_of(old), lines_of(new)
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


def _rows(ops: Sequence[Op], before: Sequence[str], after: Sequence[str], bounds: Bounds) -> Iterator[str]:
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


def _changed(op: Op, before: Sequence[str], after: Sequence[str], bounds: Bounds) -> Iterator[str]:
    for k in range(max(op.a2 - op.a1, op.b2 - op.b1)):
        a, b = op.a1 + k, op.b1 + k
        if a < op.a2 and b < op.b2:
            left, right = _pair(before[a], after[b], bounds)
            yield _row(a, left, "gone", b, right, "came")
        elif a < op.a2:
            yield _row(a, f"<del>{_escaped(before[a])}</del>", "gone", None, "", "")
        else:
            yield _row(None, "", "", b, f"<ins>{_escaped(after[b])}</ins>", "came")


def _pair(old: str, new: str, bounds: Bounds) -> tuple[str, str]:
    """Two lines with the words that differ marked, or marked whole when they are long or time is up."""
    if len(old) + len(new) > _MOST_LINE or bounds.late():
        return f"<del>{_escaped(old)}</del>", f"<ins>{_escaped(new)}</ins>"
    found = pieces(old.rstrip("\n"), new.rstrip("\n"), WORDS, Bounds(max(0.0, bounds.left()), 1 << 22))
    return "".join(_side(p, True) for p in found), "".join(_side(p, False) for p in found)


def _side(piece: Piece, old: bool) -> str:
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
