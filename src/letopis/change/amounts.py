"""Numbers as people write them: `1 299,90`, `1,299.90`, `1'299.90`, `1,23,456`, `-5`, `0,125`, in any digits."""

from __future__ import annotations

import re

_BLANKS = " \u00a0\u2009\u202f'\u2019\u02bc\u066c"
# Every repeat has a bound, and no number begins inside another: these patterns meet hostile texts.
_GROUPED = rf"\d{{1,3}}([{_BLANKS}.,])\d{{3}}(?:\1\d{{3}}){{0,6}}(?!\d)|\d{{1,2}}(?:,\d\d){{1,6}},\d{{3}}(?!\d)"
_WHOLE = rf"(?<!\d)(?:(?!0{{1,3}}[.,])(?:{_GROUPED})|\d{{1,18}}(?!\d))"
AMOUNT = rf"(?:{_WHOLE}(?:[.,\u066b]\d{{1,18}})?|(?<![\w.,])[.,]\d{{1,18}})"
"""A number; a mark before three digits parts thousands, unless nothing but 0 stands before it. Has one group."""
_NUMBER = re.compile(rf"((?<![\w.,)\]])[-\u2212])?({AMOUNT})".replace(r"\1", r"\3"))
_FRACTION = re.compile(r"[.,\u066b](\d+)$")


def first_number(text: str) -> float | None:
    """The first number that people wrote in a text; None where there is none."""
    found = _NUMBER.search(text)
    if found is None:
        return None
    sign, amount, mark = found.groups()
    part = _FRACTION.search(amount)
    if part is not None and not _parts_thousands(amount, part, mark):
        whole, fraction = amount[: part.start()], part[1]
    else:
        whole, fraction = amount, ""
    digits = "".join(filter(str.isdecimal, whole))
    return float(f"{'-' if sign else ''}{digits or '0'}.{fraction or '0'}")


def _parts_thousands(amount: str, part: re.Match[str], mark: str | None) -> bool:
    """Whether the last mark of an amount parts its thousands, and no fraction."""
    if len(part[1]) != 3 or amount[0] in ".,0":
        return False
    return mark == amount[part.start()] or (mark is None and amount.count(",") > 1)
