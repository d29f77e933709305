"""Feeds of changes with the difference inside."""

from letopis.serve.feeds.entries import Newsroom
from letopis.serve.feeds.routes import ROUTES

__all__ = ["ROUTES", "Newsroom"]
