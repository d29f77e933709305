"""Archives replicated by plain files: published, cloned, brought up to date."""

from letopis.exchange.replica.cloning import CloneReport, PullOptions, clone, detach, pull
from letopis.exchange.replica.publishing import PublishReport, publish
from letopis.exchange.replica.selection import Selection
from letopis.exchange.replica.supplying import attach

__all__ = [
    "CloneReport",
    "PublishReport",
    "PullOptions",
    "Selection",
    "attach",
    "clone",
    "detach",
    "publish",
    "pull",
]
