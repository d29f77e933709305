"""Archives replicated by plain files: published, cloned, brought up to date."""

from letopis.exchange.replica.clone_state import CloneSelection
from letopis.exchange.replica.clones import CloneReport, PullOptions, clone, detach, pull
from letopis.exchange.replica.contents import fetch_on_demand
from letopis.exchange.replica.publication import PublishReport, publish

__all__ = [
    "CloneReport", "CloneSelection", "PublishReport", "PullOptions", "clone", "detach", "fetch_on_demand",
    "publish", "pull",
]  # fmt: skip
