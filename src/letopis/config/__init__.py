"""Settings: one typed tree, read from `letopis.toml` and `LETOPIS_*`."""

from letopis.config.loader import load_settings, parse_size
from letopis.config.settings import (
    ArchiveSettings,
    CaptureSettings,
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
    SettingSource,
    StoreSettings,
    changed_settings,
    settings_table,
)

__all__ = [
    "ArchiveSettings", "CaptureSettings", "ChangeSettings", "ClusterSettings", "CrawlSettings", "DatabaseSettings",
    "FetchSettings", "JobsSettings", "MonitorSettings", "ScheduleSettings", "SearchSettings", "ServeSettings",
    "Setting", "SettingSource", "Settings", "StoreSettings", "changed_settings", "load_settings", "parse_size",
    "settings_table",
]  # fmt: skip
