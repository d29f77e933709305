"""The processes that run the job queue, and their tools: packages, stylesheets, XML.

The steps of job files are in `letopis.jobs.language`, above the operations that they call.
"""

from letopis.archive.jobs import JobQuery, Requester
from letopis.jobs.execution import JobContext, JobProgress

__all__ = ["JobContext", "JobProgress", "JobQuery", "Requester"]
