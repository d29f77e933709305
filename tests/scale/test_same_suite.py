"""The tests of the archive pass on PostgreSQL and S3 as they stand; `make scaled` runs those of other units as well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


@pytest.mark.slow
def test_the_suite_of_the_archive_passes_on_postgresql_and_s3() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS / "archive")],
        env={**os.environ, "LETOPIS_TEST_BACKEND": "scaled"}, cwd=TESTS.parent, capture_output=True, text=True,
        timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
