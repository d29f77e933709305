"""Packages: the built-in ones, folders that users made, and those that other distributions bring.

A package is a lane of the queue with a worker of its own, and, for one that
is not built in, a language of its own: `query.xsl` turns its queries into
known steps, `query.xsd` says what a query may be, `result.xsl` what becomes
of its results.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from lxml import etree

from letopis.config import Settings
from letopis.errors import NotFound, UsageError
from letopis.jobs.language.documents import MOST_BYTES, read_schema
from letopis.jobs.query import Query, Surroundings

DOWNLOADER, SENGINE, MAPGENERATOR = "downloader", "sengine", "mapgenerator"
BUILT_IN = {
    DOWNLOADER: "fetches, indexes and looks after pages: the long questions",
    SENGINE: "questions to words and versions: the short ones",
    MAPGENERATOR: "maps and links",
}
GROUP = "letopis.packages"
"""Entry points of other distributions: a name and a function `perform(query, around) -> bytes`."""
_HOMES = {
    **dict.fromkeys(("search", "wordprefix", "diff"), SENGINE),
    **dict.fromkeys(("map", "mapdiff", "broken", "links"), MAPGENERATOR),
}
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_KEYS = {"description": "", "query": "query.xsl", "schema": "query.xsd", "result": "result.xsl"}

Perform = Callable[[Query, Surroundings], bytes]


@dataclass(frozen=True, slots=True)
class Package:
    """One package. `origin` says where it comes from; `perform` is set for those written in Python."""

    name: str
    description: str
    origin: str
    folder: Path | None = None
    query: bytes | None = None
    schema: etree.XMLSchema | None = None
    result: bytes | None = None
    perform: Perform | None = None

    def stylesheet(self, name: str) -> bytes | None:
        """A stylesheet that lies in the package's folder."""
        if self.folder is None or not _FILE.fullmatch(name):
            return None
        return _read(self.folder / name)


def home_of(step: str) -> str:
    """The built-in package where a step belongs that nobody has put elsewhere."""
    return _HOMES.get(step, DOWNLOADER)


def packages_folder(settings: Settings) -> Path:
    """Where the packages of users lie."""
    named = settings.jobs.packages
    return Path(named) if named else Path(settings.archive.path) / "packages"


def packages(settings: Settings) -> dict[str, Package]:
    """All packages by name: built-in ones, those of other distributions, those of users.

    UsageError names a package that cannot be used.
    """
    found = {name: Package(name, text, "built in") for name, text in BUILT_IN.items()}
    for package in (*_distributed(), *_made(packages_folder(settings))):
        if package.name in found:
            places = f"{found[package.name].origin} and {package.origin}"
            raise UsageError(f"there are two packages '{package.name}', {places}; rename one")
        found[package.name] = package
    return found


def package_named(name: str, settings: Settings) -> Package:
    """One package; NotFound lists the others."""
    if name in BUILT_IN:
        return Package(name, BUILT_IN[name], "built in")
    folder = packages_folder(settings) / name
    if _NAME.fullmatch(name) and folder.is_dir():
        return read_package(folder)
    known = packages(settings)
    if name not in known:
        raise NotFound(f"there is no package '{name[:64]}'; known are {', '.join(known)}")
    return known[name]


def _distributed() -> Iterator[Package]:
    for point in entry_points(group=GROUP):
        yield Package(point.name, _described(point), f"entry point {point.value}", perform=_late(point))


def _described(point: EntryPoint) -> str:
    return f"brought by {point.dist.name}" if point.dist else ""


def _late(point: EntryPoint) -> Perform:
    """Loads the code of a package when it is needed first: many are listed and few are used."""

    def perform(query: Query, around: Surroundings) -> bytes:
        try:
            work: Any = point.load()
        except (ImportError, AttributeError) as fault:
            raise UsageError(f"package '{point.name}' cannot be loaded ({fault}); install it again") from None
        return bytes(work(query, around))

    return perform


def _made(folder: Path) -> Iterator[Package]:
    if folder.is_dir():
        for one in sorted(folder.iterdir()):
            if one.is_dir() and not one.name.startswith("."):
                yield read_package(one)


def read_package(folder: Path) -> Package:
    """A package that is a folder: `package.toml` or just `query.xsl`, further files by their usual names."""
    if not _NAME.fullmatch(folder.name):
        raise UsageError(f"'{folder.name}' is no name of a package; rename {folder} to small letters, digits, - and _")
    named = _settings_of(folder)
    query, schema, result = (_read(folder / named[key]) for key in ("query", "schema", "result"))
    if query is None:
        raise UsageError(f"package {folder} has no {named['query']}, which turns its queries into steps; add it")
    rules = None if schema is None else read_schema(schema, str(folder / named["schema"]))
    return Package(folder.name, named["description"], str(folder), folder, query, rules, result)


def _settings_of(folder: Path) -> dict[str, str]:
    text = _read(folder / "package.toml")
    if text is None:
        return dict(_KEYS)
    try:
        given = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise UsageError(f"{folder / 'package.toml'} is not valid TOML: {fault}; correct it") from None
    for key, value in given.items():
        if key not in _KEYS or not isinstance(value, str):
            raise UsageError(f"'{key}' in {folder / 'package.toml'} has no meaning; use {', '.join(_KEYS)}")
        if key != "description" and not _FILE.fullmatch(value):
            raise UsageError(f"'{key}' in {folder / 'package.toml'} must be the plain name of a file beside it")
        if key != "description" and not (folder / value).is_file():
            raise UsageError(f"{folder / value} is named in package.toml and is not there; add it")
    return _KEYS | given


def _read(file: Path) -> bytes | None:
    """The bytes of a file of a package, None where there is no such file."""
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; check its permissions") from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"{file} is larger than {MOST_BYTES} bytes; make it smaller")
    return data
