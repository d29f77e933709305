"""Backends under test. A new backend is one more entry here; the suite stays as it is."""

import pytest

from letopis.store import LocalBackend


@pytest.fixture(params=["local"])
def backend(request, tmp_path):
    """A fresh, empty backend, opened a second time by calling `backend.again()`."""
    makers = {"local": lambda: LocalBackend(tmp_path / "packs")}
    made = []

    def make():
        made.append(makers[request.param]())
        made[-1].again = make
        return made[-1]

    yield make()
    for one in made:
        one.close()
