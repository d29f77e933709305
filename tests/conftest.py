"""Makes the misbehaving web and the services of tests/site fixtures of every test."""

import signal
import sys
from functools import cache
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from hypothesis import HealthCheck, settings

from letopis.catalog import accounts

for folder in ("site", "openness", "../tools"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

pytest_plugins = ["misbehaving_site", "scripted_site", "services"]
COSTLY_HASHER = accounts._hasher()
# How long an example takes says something about the machine and nothing about the promise.
settings.register_profile("letopis", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("letopis")


@pytest.fixture
def costly_hasher() -> PasswordHasher:
    """What hashes passwords outside of tests."""
    return COSTLY_HASHER


def pytest_configure() -> None:
    """A shell that is no terminal starts what it leaves in the background deaf to Ctrl-C, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Passwords are costly to hash on purpose, and the tests make hundreds of accounts.
    accounts._hasher = cache(lambda: PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` looks for tests that bound CPU time in one folder: one that stands elsewhere would never run."""
    gates = Path(__file__).parent / "gates"
    lost = [item.nodeid for item in items if item.get_closest_marker("timed") and gates not in item.path.parents]
    if lost:
        raise pytest.UsageError(f"tests marked as timed belong into {gates}: {', '.join(lost)}")
    # Begun last, they would run alone at the end.
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
