"""Makes the archived web of `chronicle` a fixture of these tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from chronicle import archived  # noqa: F401
