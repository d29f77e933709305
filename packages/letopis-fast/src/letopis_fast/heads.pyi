"""Heads of records and of answers, in C."""

_Fields = tuple[tuple[str, str], ...]

def record_head(data: bytes, at: int, /) -> tuple[str, _Fields, dict[str, str], bytes, int, int] | None:
    """The head of the record that begins at a place, or behind line breaks there.

    Its version, its fields in order, the first value of each by its name in lower case, its lines without the last
    line feed, where its block begins, and how long that is. None for what is written otherwise than by nearly all.
    """

def answer_head(block: bytes, most: int, /) -> tuple[int, _Fields, int] | None:
    """Status and fields of an answer whose head ends within so many bytes, and where its body begins; None as above."""
