"""Addresses that mean one thing though they differ: numbers that browsers and scripts add to get past caches. Pure.

Pages ask for `lib.js?_=1712345678901` with another number at every visit; without this no capture of it is ever found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from letopis.archive.captures import CaptureList, KeyRange

MOST_TRIED = 10_000
"""Captures below one path among which a likeness is looked for."""
_NAMES = (
    "_", "cb", "cachebust", "cachebuster", "cache_buster", "nocache", "no_cache", "bust", "rand", "random", "rnd",
    "ord", "timestamp", "ts", "time", "tstamp", "uncache", "dc", "_dc", "_ts", "v_ts",
)  # fmt: skip
_BUSTER = re.compile(
    rf"(?:{'|'.join(_NAMES)})=(?:0?\.\d+|\d{{4,}})|[dnrtx]=1\d{{12}}"
    r"|(?:utm_[a-z]+|fbclid|gclid|ancestor_origins)=[^&]*",
    re.ASCII,
)
"""Milliseconds since 1970 are what a clock says, also under a name of one letter, but not under `v`, a version.

A page does not choose in which frames it is shown, which `ancestor_origins` tells.
"""
_CALLBACK = re.compile(r"(callback|jsonp|cb)=([a-z_.$]*?)[_\d]*\d{4,}", re.ASCII)
_BY_SCHEME = {
    "com,google-analytics)/": "com,google-analytics,ssl)/",
    "com,quantserve,edge)/": "com,quantserve,secure)/",
    "com,scorecardresearch,b)/": "com,scorecardresearch,sb)/",
}
"""Hosts of which scripts choose one by the scheme of their page, which at replay may be another: either is meant."""


def fuzzy_key(key: str) -> str:
    """A sorted key without what only gets past caches; itself where there is nothing of the kind."""
    path, mark, query = key.partition("?")
    if not mark:
        return key
    kept = [_CALLBACK.sub(r"\1=\2", part) for part in query.split("&") if not _BUSTER.fullmatch(part)]
    return f"{path}?{'&'.join(kept)}" if kept else path


def similar_keys(captures: CaptureList, key: str) -> KeyRange | None:
    """The captured key that means what this one means; None without one, or where nothing in it looks random."""
    wanted = fuzzy_key(key)
    found = _alike(captures, key, wanted) if wanted != key else None
    return found or next(
        (range_ for other in _other_hosts(key) if (range_ := _alike(captures, other, fuzzy_key(other))) is not None),
        None,
    )


def _other_hosts(key: str) -> Iterator[str]:
    for pair in _BY_SCHEME.items():
        for one, other in (pair, pair[::-1]):
            if key.startswith(one):
                yield other + key.removeprefix(one)


def _alike(captures: CaptureList, key: str, wanted: str) -> KeyRange | None:
    path = key.partition("?")[0]
    tried = 0
    for low in (path, path + "?"):
        keys = KeyRange.exactly(path) if low == path else KeyRange(low, path + "@")
        for batch in captures.batches(keys):
            found = next((row[0] for row in batch if fuzzy_key(row[0]) == wanted), None)
            if found is not None:
                return KeyRange.exactly(found)
            tried += len(batch)
            if tried > MOST_TRIED:
                return None
    return None
