"""`python -m letopis.jobs.worker`: a worker process that knows the language of job files."""

from __future__ import annotations

import sys

from letopis.jobs.execution import JobLanguage, run_worker
from letopis.jobs.language import parse_job_file, run_query

if __name__ == "__main__":
    sys.exit(run_worker(JobLanguage(parse_job_file, run_query)))
