"""Settings: one typed tree, read from `letopis.toml` and `LETOPIS_*`."""

from letopis.config.reading import load
from letopis.config.sections import (
    ArchiveSettings,
    ChangeSettings,
    ClusterSettings,
    CrawlSettings,
    DatabaseSettings,
    FetchSettings,
    JobsSettings,
    MonitorSettings,
    ScheduleSettings,
    SearchSettings,
    ServeSettings,
    Settings,
    StoreSettings,
)
from letopis.config.table import Setting, table

__all__ = [
    "ArchiveSettings",
    "ChangeSettings",
    "ClusterSettings",
    "CrawlSettings",
    "DatabaseSettings",
    "FetchSettings",
    "JobsSettings",
    "MonitorSettings",
    "ScheduleSettings",
    "SearchSettings",
    "ServeSettings",
    "Setting",
    "Settings",
    "StoreSettings",
    "load",
    "table",
]
