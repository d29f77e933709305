"""Addresses that mean one thing though they differ: numbers that browsers and scripts add to get past caches. Pure.

Pages ask for `lib.js?_=1712345678901` with another number at every visit; without this no capture of it is ever found.
"""

from __future__ import annotations

import re

from letopis.archive.captures import CaptureList, KeyRange

MOST_TRIED = 10_000
"""Captures below one path among which a likeness is looked for."""
_NAMES = (
    "_", "cb", "cachebust", "cachebuster", "cache_buster", "nocache", "no_cache", "bust", "rand", "random", "rnd",
    "ord", "timestamp", "ts", "time", "tstamp", "uncache", "dc", "_dc", "_ts", "v_ts",
)  # fmt: skip
_BUSTER = re.compile(rf"(?:{'|'.join(_NAMES)})=(?:0?\.\d+|\d{{4,}})|utm_[a-z]+=[^&]*|(?:fbclid|gclid)=[^&]*", re.ASCII)
_CALLBACK = re.compile(r"(callback|jsonp|cb)=([a-z_.$]*?)[_\d]*\d{4,}", re.ASCII)


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
    if wanted == key:
        return None
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
