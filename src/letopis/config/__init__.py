"""Settings: one typed tree, read from `letopis.toml` and `LETOPIS_*`."""

from letopis.config.loader import load_settings, parse_size
from letopis.config.settings import (
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
    Setting,
    Settings,
    StoreSettings,
    settings_table,
)

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
    "load_settings",
    "parse_size",
    "settings_table",
]
