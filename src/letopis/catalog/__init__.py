"""Facts in SQL: URLs, checks, versions, places of contents, observers."""

from letopis.catalog.catalog import Catalog, CatalogTotals
from letopis.catalog.contents import ABSENT, Contents, HeaderRecords
from letopis.catalog.database import Cursor, Database, DatabaseSnapshot
from letopis.catalog.dialect import Sqlite, dialect_for
from letopis.catalog.resources import Observers, ObserverState, Resources
from letopis.catalog.schema import (
    OUTCOME_CODES,
    OUTCOMES,
    SCHEMA_VERSION,
    CaptureRow,
    ContentRow,
    ResourceRow,
    RowReader,
    VersionRow,
)
from letopis.catalog.versions import StoredVersion, Versions

__all__ = [
    "ABSENT",
    "OUTCOMES",
    "OUTCOME_CODES",
    "SCHEMA_VERSION",
    "CaptureRow",
    "Catalog",
    "CatalogTotals",
    "ContentRow",
    "Contents",
    "Cursor",
    "Database",
    "DatabaseSnapshot",
    "HeaderRecords",
    "ObserverState",
    "Observers",
    "ResourceRow",
    "Resources",
    "RowReader",
    "Sqlite",
    "StoredVersion",
    "VersionRow",
    "Versions",
    "dialect_for",
]
