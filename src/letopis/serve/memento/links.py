"""The `Link` header of RFC 7089."""

from __future__ import annotations

from letopis.catalog.moments import Moment
from letopis.serve.memento.addresses import Web
from letopis.serve.stamps import http_stamp

LINK_FORMAT = "application/link-format"


def resource_links(web: Web, url: str) -> str:
    """Original, TimeGate and TimeMap: what every answer about a URL names."""
    return (
        f'<{url}>; rel="original", <{web.timegate(url)}>; rel="timegate", '
        f'<{web.timemap(url)}>; rel="timemap"; type="{LINK_FORMAT}"'
    )


def memento_links(web: Web, named: list[tuple[str, Moment | None]]) -> str:
    """Mementos by their relation; one that has several relations is named once with all of them."""
    relations: dict[Moment, list[str]] = {}
    for relation, moment in named:
        if moment is not None:
            relations.setdefault(moment, []).append(relation)
    return ", ".join(
        f'<{web.memento(moment.time, moment.url)}>; rel="{" ".join([*words, "memento"]).strip()}"; '
        f'datetime="{http_stamp(moment.time)}"'
        for moment, words in relations.items()
    )
