"""Settings that owners changed: stored in the archive, and applied over the defaults when it is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from letopis.catalog import Catalog
from letopis.catalog.edited_settings import EditedSetting, EditedSettings
from letopis.config import Settings
from letopis.lazy import lazy

if TYPE_CHECKING:
    from letopis.archive.archive import Archive
    from letopis.config import editable
else:
    editable = lazy("letopis.config.editable")  # few archives have any

__all__ = ["EditedSetting", "EditedSettings", "edited_settings_of", "with_edited_settings"]


def edited_settings_of(archive: Archive) -> EditedSettings:
    """What its owners changed, which applies the next time it is opened."""
    return EditedSettings(archive.catalog.database)


def with_edited_settings(settings: Settings, catalog: Catalog) -> Settings:
    """The settings of a run with what owners changed; values given for the run take precedence."""
    edited = EditedSettings(catalog.database).all()
    return editable.with_edited(settings, {name: one.value for name, one in edited.items()}) if edited else settings
