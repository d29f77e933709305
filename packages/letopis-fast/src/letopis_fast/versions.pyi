"""Versions of solid frames, in C."""

def unfold(
    newest: bytes, scripts: bytes, index: int, ends: bytes, most_tokens: int, most_bytes: int, /
) -> bytes | None:
    """The form of version `index`, 1 and up, that a chain of scripts makes of the newest form.

    `scripts` begins with the scripts of versions 1 to `index`, each ended by NUL. None where that is too large or does
    not fit: the twin in Python tells why.
    """
