"""Addresses of archived pages inside our own, `/url/<url>`, with questions of our own behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, unquote_plus

from letopis.archive import Archive
from letopis.errors import BadUrl
from letopis.serve.memento.addresses import asked, target


@dataclass(frozen=True, slots=True)
class Asked:
    """The page that is meant, and the parameters that are ours."""

    url: str
    own: dict[str, str]


def asked_page(archive: Archive, scope: Any, prefix: str, names: tuple[str, ...]) -> Asked:
    """What `<prefix><url>?<query>` means.

    Parameters with one of our `names` are ours, all others belong to the
    address. Addresses are taken as they stand; one that is not known then is
    read as escaped, which is how our own links write a query.
    """
    path, _, query = asked(scope, prefix).partition("?")
    own, rest = _parted(query, names)
    tail = f"?{rest}" if rest else ""
    plain = _address(path + tail)
    if plain is not None and archive.catalog.resources.find(plain) is not None:
        return Asked(plain, own)
    opened = target(unquote(path) + tail)
    return Asked(opened, own)


def _address(text: str) -> str | None:
    try:
        return target(text)
    except BadUrl:
        return None


def _parted(query: str, names: tuple[str, ...]) -> tuple[dict[str, str], str]:
    own: dict[str, str] = {}
    rest = []
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        if name in names:
            own[name] = unquote_plus(value)
        else:
            rest.append(pair)
    return own, "&".join(rest)
