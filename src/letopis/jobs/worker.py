"""`python -m letopis.jobs.worker`: a worker process that knows the language of job files."""

from __future__ import annotations

import sys

from letopis.jobs.language import parse, perform
from letopis.jobs.working import Language, obey

if __name__ == "__main__":
    sys.exit(obey(Language(parse, perform)))
