"""Facts in SQL: URLs, checks, versions, places of contents, observers."""

from letopis.catalog.contents import ABSENT, Contents
from letopis.catalog.database import Cursor, Database, Snapshot
from letopis.catalog.dialect import Sqlite, dialect_for
from letopis.catalog.facade import Catalog
from letopis.catalog.heads import Heads
from letopis.catalog.lookup import Found
from letopis.catalog.observers import Look, Observers
from letopis.catalog.resources import Resources
from letopis.catalog.rows import (
    OUTCOME_CODES,
    OUTCOMES,
    CaptureRow,
    ContentRow,
    Reader,
    ResourceRow,
    VersionRow,
)
from letopis.catalog.schema import SCHEMA_VERSION
from letopis.catalog.totals import Totals
from letopis.catalog.versions import Versions

__all__ = [
    "ABSENT",
    "OUTCOMES",
    "OUTCOME_CODES",
    "SCHEMA_VERSION",
    "CaptureRow",
    "Catalog",
    "ContentRow",
    "Contents",
    "Cursor",
    "Database",
    "Found",
    "Heads",
    "Look",
    "Observers",
    "Reader",
    "ResourceRow",
    "Resources",
    "Snapshot",
    "Sqlite",
    "Totals",
    "VersionRow",
    "Versions",
    "dialect_for",
]
