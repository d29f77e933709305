"""What alerts say, in the reader's language: their sentences are kept in English, as notifications send them."""

from __future__ import annotations

import re

from letopis.web.languages import translatable, translate

_SENTENCES = [
    (re.compile(pattern), text)
    for pattern, text in (
        (r"is unavailable now: (?P<why>.*)", translatable("is unavailable now: {why}")),
        (
            r"is unavailable (?P<times>\d+) times in a row: (?P<why>.*)",
            translatable("is unavailable {times} times in a row: {why}"),
        ),
        (
            r"is available again after (?P<times>\d+) failed checks",
            translatable("is available again, failed checks before: {times}"),
        ),
        (
            r"answers with status (?P<now>\d+), before it was (?P<before>\d+)",
            translatable("answers with status {now}, before it was {before}"),
        ),
        (
            r"now leads to (?P<now>\S*), before to (?P<before>\S*)",
            translatable("now leads to {now}, before to {before}"),
        ),
        (
            r"has changed; it is too large to be stored, its header says: (?P<why>.*)",
            translatable("has changed; it is too large to be stored, its header says: {why}"),
        ),
        (
            r"has changed: (?P<came>\d+) lines? added, (?P<gone>\d+) removed(?P<rest>.*)",
            translatable("has changed: lines added {came}, removed {gone}{rest}"),
        ),
        (r"has not changed since (?P<time>.*)", translatable("has not changed since {time}")),
    )
]
_STATUS = re.compile(r"status (?P<status>\d+)")


def alert_words(sentence: str) -> str:
    """The sentence of an alert without the address, translated where it is one of ours."""
    for pattern, text in _SENTENCES:
        if found := pattern.fullmatch(sentence):
            return translate(text, **{name: _part(value) for name, value in found.groupdict().items()})
    return sentence


def _part(value: str) -> str:
    found = _STATUS.fullmatch(value)
    return translate(translatable("status {status}"), status=found["status"]) if found else value
