"""The Dask cluster that settings or an option name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import click

from letopis.archive.spreading import OnCluster, Spread, is_shared, require_shared
from letopis.cli.context import Given
from letopis.config import Settings
from letopis.errors import MissingExtra, NotReady

CLUSTER = click.option("--cluster", metavar="ADDRESS", help="Work on a Dask cluster (tcp://host:8786).")
_PATIENCE = "10s"


def use_cluster(given: Given, address: str | None) -> None:
    """Takes up the option; UsageError when it names a cluster that cannot see the archive."""
    given.set("cluster.address", address)
    if address:
        require_shared(given.settings())


@contextmanager
def cluster(address: str) -> Iterator[Any]:
    """A client of the cluster; NotReady when its scheduler does not answer."""
    try:
        library: Any = import_module("distributed")
    except ImportError:
        raise MissingExtra("a cluster needs 'pip install letopis[cluster]'") from None
    try:
        client = library.Client(address, timeout=_PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise NotReady(f"no Dask scheduler answers at {address} ({error}); check cluster.address") from error
    with client:
        yield client


@contextmanager
def spread_over(settings: Settings, *, where_shared: bool = False) -> Iterator[Spread | None]:
    """Whoever works on pieces of the archive: the cluster that is named, connected to when it is needed; else None.

    Workers must see the archive; where they cannot, `where_shared` is content with None, others are refused.
    """
    if not settings.cluster.address or (where_shared and not is_shared(settings)):
        yield None
        return
    with ExitStack() as stack:
        client: list[Any] = []

        def connected() -> Any:
            if not client:
                client.append(stack.enter_context(cluster(settings.cluster.address)))
            return client[0]

        yield OnCluster(connected, settings)
