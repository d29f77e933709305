"""`python -m letopis.cli` is `letopis`."""

import sys

from letopis.cli.main import main

sys.exit(main())
