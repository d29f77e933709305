"""The Dask cluster that settings or an option name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from letopis.errors import MissingExtra, NotReady

CLUSTER = click.option("--cluster", metavar="ADDRESS", help="Work on a Dask cluster (tcp://host:8786).")
_PATIENCE = "10s"


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


def workers(client: Any) -> int:
    """How many tasks the cluster works on at once."""
    return max(1, int(sum(client.nthreads().values())))
