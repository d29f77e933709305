"""The queue of questions: asked in XML, worked off by packages, answered in XML."""

from letopis.jobs.query import COMMAND_LINE, JobContext, JobProgress, JobQuery, Requester
from letopis.jobs.queue import JobFilter, JobQueue, JobSubmitter, QueueFull, remove_old_jobs

__all__ = [
    "COMMAND_LINE",
    "JobContext",
    "JobFilter",
    "JobProgress",
    "JobQuery",
    "JobQueue",
    "JobSubmitter",
    "QueueFull",
    "Requester",
    "remove_old_jobs",
]
