"""Makes a Dask cluster of two workers, and a fleet with its web, fixtures of these tests."""

from crawl_fleet import fleet, web  # noqa: F401
from dask_workers import client, cluster_of_two, workers  # noqa: F401
