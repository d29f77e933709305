"""Gives the tests of the store a folder, a ledger and pages."""

import pytest

from letopis.config.settings import StoreSettings
from letopis.store import LocalBackend, Store


@pytest.fixture
def opened(tmp_path):
    """Opens stores in one folder and closes those that a test left open."""
    stores = []

    def opener(*, write=True, folder="store", disk=None, **changes):
        store = Store.open(LocalBackend(tmp_path / folder, disk=disk), StoreSettings(**changes), write=write)
        stores.append(store)
        return store

    yield opener
    for store in stores:
        store.close()
