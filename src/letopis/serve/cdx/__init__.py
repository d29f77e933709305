"""Lists of captures in the dialects of the two CDX servers that tools know."""

from letopis.serve.cdx.query import Finder, Query
from letopis.serve.cdx.routes import ROUTES

__all__ = ["ROUTES", "Finder", "Query"]
