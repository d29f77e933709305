"""Makes the misbehaving web of tests/site a fixture of every test."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site"))

pytest_plugins = ["misbehaving_site", "scripted_site"]
