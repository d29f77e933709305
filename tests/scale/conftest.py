"""Makes a Dask cluster of two workers a fixture of these tests."""

from dask_workers import client, cluster_of_two, workers  # noqa: F401
