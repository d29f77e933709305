"""Facts in SQL: URLs, checks, versions, places of contents, observers."""

from letopis.catalog.catalog import Catalog, CatalogTotals
from letopis.catalog.contents import ABSENT, HeaderRecords
from letopis.catalog.database import Cursor, Database, DatabaseSnapshot
from letopis.catalog.dialect import Sqlite, dialect_for
from letopis.catalog.resources import ObserverState
from letopis.catalog.schema import OUTCOME_CODES, OUTCOMES, CaptureRow, ContentRow, ResourceRow, VersionRow
from letopis.catalog.versions import StoredVersion

__all__ = [
    "ABSENT", "OUTCOMES", "OUTCOME_CODES", "CaptureRow", "Catalog", "CatalogTotals", "ContentRow", "Cursor",
    "Database", "DatabaseSnapshot", "HeaderRecords", "ObserverState", "ResourceRow", "Sqlite", "StoredVersion",
    "VersionRow", "dialect_for",
]  # fmt: skip
