"""The queue of questions: asked in XML, worked off by packages, answered in XML."""

from letopis.jobs.asker import COMMAND_LINE, Asker
from letopis.jobs.query import Progress, Query, Surroundings
from letopis.jobs.questions import Questions, QueueFull
from letopis.jobs.queue import Queue, Wanted
from letopis.jobs.retention import clean

__all__ = [
    "COMMAND_LINE",
    "Asker",
    "Progress",
    "Query",
    "Questions",
    "Queue",
    "QueueFull",
    "Surroundings",
    "Wanted",
    "clean",
]
