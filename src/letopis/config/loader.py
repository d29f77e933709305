"""Settings from a TOML file, the environment and the command line, later ones winning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from letopis.config.settings import MOST_NUMBER, Setting, Settings, SettingSource, find_setting, settings_table
from letopis.errors import SettingError, UsageError
from letopis.lazy import lazy
from letopis.model.times import parse_duration

if TYPE_CHECKING:
    import difflib
    import tomllib
else:
    difflib = lazy("difflib")
    tomllib = lazy("tomllib")

_SIZES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_WRITTEN_SIZES = {"GiB": 2**30, "GB": 10**9, "MiB": 2**20, "MB": 10**6, "KiB": 2**10, "kB": 10**3}
_MOST_SIZE = float(1 << 60)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII)
_NOT_SETTINGS = {
    "LETOPIS_ARCHIVE", "LETOPIS_CONFIG",
    # What tests and benchmarks ask for; the commands that they start see these too.
    "LETOPIS_CORPUS", "LETOPIS_CORPUS_WARC", "LETOPIS_DAMAGE_ROUNDS", "LETOPIS_FUZZ", "LETOPIS_LONG",
    "LETOPIS_TEST_BACKEND",
}  # fmt: skip


def load_settings(
    file: Path | None = None, environ: Mapping[str, str] | None = None, given: Mapping[str, Any] | None = None
) -> Settings:
    """The settings of a run.

    An unknown name or a value that does not fit raises SettingError, which
    names the nearest setting or what is allowed.
    """
    found: list[tuple[SettingSource, Mapping[str, Any]]] = [
        ("file", _from_file(file) if file is not None else {}),
        ("environment", _from_environ(environ or {})),
        ("command line", given or {}),
    ]
    values = {name: value for _, part in found for name, value in part.items()}
    return _assemble(values).with_sources({name: source for source, part in found for name in part})


def _from_file(file: Path) -> dict[str, Any]:
    try:
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"cannot read {file}: {error.strerror}; name another file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{file} is not valid TOML: {error}") from None
    return dict(_flatten(tree))


def _flatten(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for section, body in tree.items():
        if not isinstance(body, Mapping):
            raise SettingError(unknown_setting(section))
        for key, value in body.items():
            yield f"{section}.{key}", value


def _from_environ(environ: Mapping[str, str]) -> dict[str, Any]:
    ours = {
        variable: value
        for variable, value in environ.items()
        if variable.startswith("LETOPIS_") and variable not in _NOT_SETTINGS
    }
    by_variable = {row.variable: row.name for row in settings_table().values()} if ours else {}
    found: dict[str, Any] = {}
    for variable, value in ours.items():
        if variable not in by_variable:
            raise SettingError(unknown_setting(variable, list(by_variable)))
        found[by_variable[variable]] = value
    if "LETOPIS_ARCHIVE" in environ:
        found["archive.path"] = environ["LETOPIS_ARCHIVE"]
    return found


def unknown_setting(name: str, known: list[str] | None = None) -> str:
    """The sentence for a name that no setting has, with the nearest that there is."""
    near = difflib.get_close_matches(name, known or list(settings_table()), n=1, cutoff=0.4)
    return f"there is no setting '{name[:70]}'" + (f"; did you mean '{near[0]}'?" if near else "")


def _assemble(values: Mapping[str, Any]) -> Settings:
    sections: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        row = find_setting(name)
        if row is None:
            raise SettingError(unknown_setting(name))
        section, key = name.split(".", 1)
        sections.setdefault(section, {})[key] = fitted_value(row, value)
    settings = Settings()
    changed = {name: replace(getattr(settings, name), **body) for name, body in sections.items()}
    return replace(settings, **changed)


def fitted_value(row: Setting, value: Any) -> Any:
    """The value in the setting's own type, or SettingError."""
    try:
        return _convert(row, value)
    except (ValueError, TypeError, UsageError) as error:
        raise SettingError(f"{row.name} = {value!r} does not fit: {error}") from None


def _convert(row: Setting, value: Any) -> Any:
    if row.unit == "seconds" and isinstance(value, str):
        return parse_duration(value)
    if row.unit == "bytes" and isinstance(value, str):
        return parse_size(value)
    if get_origin(row.type) is Literal:
        return _one_of(value, get_args(row.type))
    if get_origin(row.type) is tuple:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else tuple(value)
    if row.type is bool:
        return _truth(value)
    return str(value) if row.type is str else _number(row, value)


def _number(row: Setting, value: Any) -> Any:
    """Of the setting's type without a loss; not below zero, unless its default is."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError("a number is required")
    number, least = row.type(value), min(0, row.default)
    if not least <= number <= MOST_NUMBER:
        raise ValueError(f"write a number from {least:g} to {MOST_NUMBER:g}")
    if not isinstance(value, str) and number != value:
        raise ValueError("an integer is required")
    return number


def parse_size(text: str) -> int:
    """Bytes, written as 4096, 64KiB, 10MiB or 1GiB; UsageError for anything else."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SIZES:
        raise UsageError(f"'{text}' is not a size; write a size as 4096, 64KiB, 10MiB or 1GiB")
    size = float(match[1]) * _SIZES[match[2]]
    if size > _MOST_SIZE:
        raise UsageError(f"'{text[:70]}' is too large; write a size as 4096, 64KiB, 10MiB or 1GiB")
    return int(size)


def format_size(count: int) -> str:
    """The same size as people write it, exactly: 10 MiB, 1500 kB, 4097."""
    whole = (f"{count // size} {unit}" for unit, size in _WRITTEN_SIZES.items() if count and count % size == 0)
    return next(whole, str(count))


def _one_of(value: Any, allowed: tuple[Any, ...]) -> Any:
    """The allowed value that this is, or is the text of."""
    for one in allowed:
        if value == one or (isinstance(value, str) and value == str(one)):
            return one
    raise ValueError("allowed are " + ", ".join(map(str, allowed)))


def _truth(value: Any) -> bool:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in words:
        raise ValueError("write true or false")
    return words[str(value).lower()]
