"""Rows of the catalogue as watches, and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from letopis.catalog.watches import Watches, WatchRow
from letopis.config import MonitorSettings
from letopis.monitor.deciding import WatchState
from letopis.monitor.watch import Kind, Named, Watch, WatchSpec, settled


def tags_of(watches: Watches) -> dict[str, WatchSpec]:
    """The defaults of every tag that has some."""
    return {name: WatchSpec.from_json(text) for name, text in watches.tags().items()}


def settled_of(row: WatchRow, tags: Mapping[str, WatchSpec], settings: MonitorSettings) -> Watch:
    """The watch that a row means."""
    kind: Kind = "sitemap" if row.kind == "sitemap" else "page"
    return settled(Named(row.url, kind, row.tag, row.source), _spec(row.spec), tags.get(row.tag), settings)


@lru_cache(maxsize=256)
def _spec(text: str) -> WatchSpec:
    """Watches of one sitemap or one habit share their specification."""
    return WatchSpec.from_json(text)


def row_of(named: Named, spec: WatchSpec, now: int) -> WatchRow:
    """A new watch, due at once; how long it has not changed is counted from now on."""
    state = WatchState(changed=now).to_json()
    return WatchRow(0, named.url, named.kind, named.tag, named.source, spec.to_json(), state, now, now)
