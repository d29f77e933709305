"""Makes the archived web of `word_chronicle` a fixture of these tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from word_chronicle import chronicle, small  # noqa: F401
