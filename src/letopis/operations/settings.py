"""Settings: their values and where each was set; those that owners change while the archive is in use are validated
before they are stored, and effective from the next start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from letopis.archive import OWN, READ, Archive
from letopis.archive.edited_settings import EditedSetting, edited_settings_of
from letopis.config import Settings, SettingSource, settings_table
from letopis.config.editable import EDITABLE, LONGEST_VALUE, edited_value, is_editable, pending_value
from letopis.config.settings import setting_value
from letopis.errors import NotFound
from letopis.model import to_millis
from letopis.operations.context import Context, LocalContext
from letopis.operations.operation import Rows, Value, operation
from letopis.operations.parameters import NoParameters, Parameters, parameter
from letopis.tuples import NamedTuple

_SECRET = ("key", "password", "secret", "token", "headers")
_PASSWORD = re.compile(r"(://[^/@:\s]*:)[^/@\s]+@")
_PRIVATE = ("url", "path", "proxy", "endpoint", "ca_file", "address", "trusted_proxies")
"""Settings that tell about the machine or hold credentials: for owners only."""


class SettingRow(NamedTuple):
    """A setting: its value and its default as they are written, the variable that sets it, and where it was set.

    Owners can change `editable` ones; `next` is the value from the next start on, if it differs.
    """

    name: str
    value: str
    default: str
    unit: str
    changed: bool
    variable: str
    help: str
    source: SettingSource = "default"
    editable: bool = False
    next: str | None = None


@operation(
    "settings", right=READ, verb="settings", route=("GET", "/settings"),
    columns=("name", "value", "default", "unit", "help"), creates=False,
    examples=("letopis settings", "letopis settings --json"),
)  # fmt: skip
def settings(context: Context | LocalContext, asked: NoParameters) -> Rows[SettingRow]:
    """List the settings in effect, with their defaults; secrets are never shown. Needs no archive."""
    if isinstance(context, Context):
        return Rows(_settings_of(context.archive, owner=context.may(OWN)))
    try:
        archive = context.open_archive()
    except NotFound:
        return Rows(shown_settings(context.settings, owner=True, edited={}))
    with archive:
        return Rows(_settings_of(archive, owner=True))


def _settings_of(archive: Archive, *, owner: bool) -> list[SettingRow]:
    edited = {name: one.value for name, one in edited_settings_of(archive).all().items()}
    return shown_settings(archive.settings, owner=owner, edited=edited)


def shown_settings(settings: Settings, *, owner: bool, edited: Mapping[str, str]) -> list[SettingRow]:
    """All settings; what only owners may see is masked for others. `edited` are what owners have changed."""
    rows = []
    for row in settings_table().values():
        name, value = row.name.partition(".")[2], setting_value(settings, row.name)
        text = _PASSWORD.sub(r"\1…@", _written(value))
        if value and any(word in name for word in _SECRET):
            text = "set"
        elif value and name in _PRIVATE and not owner:
            text = "set; only owners see it"
        default = _written(row.default)
        source = settings.source_of(row.name)
        editable = is_editable(settings, row)
        later = _written(pending_value(row, edited.get(row.name)))
        rows.append(SettingRow(
            row.name, text, default, row.unit, value != row.default, row.variable, row.help, source, editable,
            later if editable and later != text else None,
        ))  # fmt: skip
    return rows


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


_NAME = "Name of the setting, such as crawl.delay."
_WHEN = "it takes effect at the next start of 'letopis serve' or 'letopis run', and of every command"


class SetSettingCommand(Parameters):
    """Which setting, and its new value."""

    name: str = parameter(_NAME, argument=True, longest=64)
    value: str = parameter(
        "The value as it is written in the settings file; 10s, 1h, 10MiB; a list with commas.",
        argument=True, longest=LONGEST_VALUE,
    )  # fmt: skip


class ResetSettingCommand(Parameters):
    """Which setting."""

    name: str = parameter(_NAME, argument=True, longest=64)


def _row(context: Context, name: str) -> SettingRow:
    return next(row for row in _settings_of(context.archive, owner=True) if row.name == name)


@operation(
    "set_setting", right=OWN, verb="settings set", route=("PUT", "/settings/{name}"), audited="setting changed",
    subject=lambda asked: f"{asked.name} = {asked.value}"[:200], creates=False, errors=(404,),
    sentence=lambda row: f"{row.name} = {row.next}; {_WHEN}",
    examples=("letopis settings set crawl.delay 2s", "letopis settings set monitor.every 6h"),
)  # fmt: skip
def set_setting(context: Context, asked: SetSettingCommand) -> Value[SettingRow]:
    """Change a setting of the archive; it takes effect at the next start.

    Only those that are safe to change from a browser: bounds, times, and what notifications say. What the settings
    file, the environment or the command line says wins, and is changed there.
    """
    edited_value(context.settings, asked.name, asked.value)
    kept = EditedSetting(asked.name, asked.value, context.user, to_millis(context.moment()))
    edited_settings_of(context.archive).set(kept)
    return Value(_row(context, asked.name))


@operation(
    "reset_setting", right=OWN, verb="settings reset", route=("DELETE", "/settings/{name}"),
    audited="setting reset", creates=False, errors=(404,), sentence=lambda row: f"{row.name} = {row.default}; {_WHEN}",
    examples=("letopis settings reset crawl.delay",),
)  # fmt: skip
def reset_setting(context: Context, asked: ResetSettingCommand) -> Value[SettingRow]:
    """Reset a setting that owners changed; its default takes effect at the next start."""
    if asked.name not in EDITABLE or not edited_settings_of(context.archive).reset(asked.name):
        raise NotFound(f"'{asked.name}' was not changed in the archive; 'letopis settings' shows where each was set")
    return Value(_row(context, asked.name))
