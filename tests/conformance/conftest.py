"""Backends under test. A new backend is one more entry here; the suite stays as it is."""

import pytest

from letopis.archive.shared_gate import UpkeepLease
from letopis.catalog import Database, Sqlite
from letopis.catalog.leases import UPKEEP, PackClaims
from letopis.errors import Busy
from letopis.store import LocalBackend
from letopis.store.bucket import BlockCache, Bucket
from letopis.store.object_backend import ObjectBackend, WriterCoordination


def shared_backend(bucket, folder):
    """A bucket whose writers agree through a catalogue."""
    claims = PackClaims(Database(Sqlite(folder / "claims.sqlite")))

    def lease():
        fence = claims.take(UPKEEP, 0, 1)
        if fence is None:
            raise Busy("another process writes to the bucket")
        return UpkeepLease(claims, fence)

    return ObjectBackend(bucket, BlockCache(folder / "cache", 1 << 20), WriterCoordination(lease, claims.number))


@pytest.fixture(params=["local", "objects"])
def backend(request, tmp_path):
    """A fresh, empty backend, opened a second time by calling `backend.again()`."""
    if request.param == "objects":
        bucket = Bucket(request.getfixturevalue("object_server").settings())
    makers = {"local": lambda: LocalBackend(tmp_path / "packs"), "objects": lambda: shared_backend(bucket, tmp_path)}
    made = []

    def make():
        made.append(makers[request.param]())
        made[-1].again = make
        return made[-1]

    yield make()
    for one in made:
        one.close()
