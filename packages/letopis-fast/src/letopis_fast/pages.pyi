"""Pages in HTML, in C."""

FORMAT: int
"""Which events there are."""

def events(
    body: bytes, full: bool, /
) -> (
    tuple[
        str | None,
        list[tuple[str, dict[str, str | None] | None, str, int]],
        list[tuple[int, int, dict[str, str | None] | None, int]],
        list[str],
        list[str | None],
    ]
    | None
): ...
