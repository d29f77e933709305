"""Settings that owners change while the archive is in use: validated before they are stored, effective from the next
start.
"""

from __future__ import annotations

from letopis.archive import OWN
from letopis.archive.edited_settings import EditedSetting, edited_settings_of
from letopis.config.editable import EDITABLE, LONGEST_VALUE, edited_value
from letopis.errors import NotFound
from letopis.model import to_millis
from letopis.operations.answers import Value
from letopis.operations.context import Context
from letopis.operations.operation import operation
from letopis.operations.parameters import Parameters, parameter
from letopis.operations.totals import SettingRow, shown_settings

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
    edited = {key: one.value for key, one in edited_settings_of(context.archive).all().items()}
    return next(row for row in shown_settings(context.settings, owner=True, edited=edited) if row.name == name)


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
