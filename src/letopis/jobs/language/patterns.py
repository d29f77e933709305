"""Regular expressions of people whom nobody knows: bounded in length and in time."""

from __future__ import annotations

import regex

from letopis.errors import UsageError

MOST_SIGNS = 1000
_SUBJECT = 2048
_SECONDS = 0.25


class Pattern:
    """A pattern that is searched in addresses; UsageError for one that is none, or that takes too long."""

    def __init__(self, text: str) -> None:
        if len(text) > MOST_SIGNS:
            raise UsageError(f"the pattern '{text[:40]}...' is longer than {MOST_SIGNS} characters; shorten it")
        try:
            self._compiled = regex.compile(text)
        except (regex.error, RecursionError, OverflowError) as fault:
            raise UsageError(f"'{text}' is not a regular expression ({fault}); correct it") from None

    def found_in(self, url: str) -> bool:
        """Whether it occurs in the beginning of an address."""
        try:
            return self._compiled.search(url[:_SUBJECT], timeout=_SECONDS) is not None
        except TimeoutError:
            raise UsageError(f"the pattern '{self._compiled.pattern}' takes too long; write a simpler one") from None
