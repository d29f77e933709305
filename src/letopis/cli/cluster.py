"""The Dask cluster that settings or an option name."""

from __future__ import annotations

import click

from letopis.archive.write_gates import require_shared
from letopis.cli.context import CliContext

CLUSTER_OPTION = click.option("--cluster", metavar="ADDRESS", help="Work on a Dask cluster (tcp://host:8786).")


def use_cluster(given: CliContext, address: str | None) -> None:
    """Takes up the option; UsageError when it names a cluster that cannot see the archive."""
    given.set("cluster.address", address)
    if address:
        require_shared(given.settings())
