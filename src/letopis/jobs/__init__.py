"""The processes that work off the job queue, and what they work with: packages, stylesheets, XML.

The steps of job files are in `letopis.jobs.language`, above the operations
that they are made of.
"""

from letopis.archive.jobs import JobQuery, Requester
from letopis.jobs.execution import JobContext, JobProgress

__all__ = ["JobContext", "JobProgress", "JobQuery", "Requester"]
