"""Which versions stay: by count, by age, and thinned to one a day. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from letopis.config import StoreSettings

_DAY = 86_400_000


def kept(times: Sequence[int], settings: StoreSettings, now: int) -> list[bool]:
    """For versions oldest first, whether each is kept. The newest always is."""
    keep = [True] * len(times)
    newest = len(times) - 1
    if settings.keep_versions:
        for index in range(max(0, len(times) - settings.keep_versions)):
            keep[index] = False
    if settings.keep_for:
        horizon = now - int(settings.keep_for * 1000)
        # A version counts as old when the one after it is: until then it was what the page said.
        for index in range(newest):
            keep[index] = keep[index] and times[index + 1] >= horizon
    if settings.thin_after:
        horizon = now - int(settings.thin_after * 1000)
        for index in range(newest):
            same_day = times[index] // _DAY == times[index + 1] // _DAY
            keep[index] = keep[index] and not (same_day and times[index + 1] < horizon)
    if times:
        keep[newest] = True
    return keep


def is_limited(settings: StoreSettings) -> bool:
    """Whether any rule can drop a version."""
    return bool(settings.keep_versions or settings.keep_for or settings.thin_after)
