"""Job packages and stylesheets: the built-in ones, folders created by users, and those of other distributions.

A package is a lane of the queue with its own worker and, unless it is built in, its own language: `query.xsl` turns
its queries into known steps, `query.xsd` is the schema of its queries, `result.xsl` transforms its results.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

from letopis.archive.jobs import JobQuery
from letopis.config import Settings
from letopis.errors import NotFound, UsageError
from letopis.jobs.documents import MAX_XML_BYTES, read_schema, read_xml
from letopis.jobs.execution import JobContext
from letopis.jobs.xslt import XsltLimits, run_xslt
from letopis.lazy import etree
from letopis.tuples import NamedTuple

STYLESHEETS = {
    "map-page": "a page with the hierarchical map of a site",
    "sitemap": "sitemap.xml of the pages of a map",
    "news-rss": "RSS of what is new on a site, from mapdiff",
    "broken-page": "a page of broken links, by the page they are on",
    "text": "plain text of any result",
}
"""Stylesheets of the package by name."""
QUERY_BOUNDS = XsltLimits(seconds=10.0, memory=512 << 20, output=1 << 20)
RESULT_BOUNDS = XsltLimits(seconds=60.0, memory=2 << 30, output=256 << 20)
OWN_STYLESHEET = "own"
"""The name for the stylesheet of the query, or else of its package."""


def transform_result(result: bytes, stylesheet: bytes | str) -> bytes:
    """What a stylesheet makes of a result: one of the package by its name, or the bytes of any other.

    It can read no files and no network, and time, memory, recursion and the
    size of what it makes are bounded. UsageError says what stopped it.
    """
    if isinstance(stylesheet, str):
        return run_stylesheet(result, packaged_stylesheet(stylesheet), f"'{stylesheet}'", RESULT_BOUNDS)
    return run_stylesheet(result, stylesheet, "the stylesheet given", RESULT_BOUNDS)


def run_stylesheet(document: bytes, stylesheet: bytes, what: str, bounds: XsltLimits = QUERY_BOUNDS) -> bytes:
    """The transformation in a separate process; `what` names the stylesheet in messages."""
    try:
        return run_xslt(document, stylesheet, bounds)
    except UsageError as fault:
        raise UsageError(f"{what}: {fault}") from None


def packaged_stylesheet(name: str) -> bytes:
    """A stylesheet of the package; UsageError lists their names."""
    if name not in STYLESHEETS:
        raise UsageError(f"unknown stylesheet '{name[:64]}'; choose one of {', '.join(STYLESHEETS)}")
    return files("letopis.jobs").joinpath("styles", f"{name}.xsl").read_bytes()


DOWNLOADER, SENGINE, MAPGENERATOR = "downloader", "sengine", "mapgenerator"
BUILT_IN = {
    DOWNLOADER: "fetches and indexes pages, maintains the archive: the long queries",
    SENGINE: "queries of words and versions: the short ones",
    MAPGENERATOR: "maps and links",
}
ENTRY_POINT_GROUP = "letopis.packages"
"""Entry points of other distributions: a name and a function `perform(query, around) -> bytes`."""
_PACKAGE_OF_STEP = {
    **dict.fromkeys(("search", "wordprefix", "when", "categories", "duplicates", "diff"), SENGINE),
    **dict.fromkeys(("map", "mapdiff", "report", "broken", "links"), MAPGENERATOR),
}
_PACKAGE_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_PACKAGE_KEYS = {"description": "", "query": "query.xsl", "schema": "query.xsd", "result": "result.xsl"}

PerformQuery = Callable[[JobQuery, JobContext], bytes]


class JobPackage(NamedTuple):
    """One package. `origin` says where it comes from; `perform` is set for those written in Python."""

    name: str
    description: str
    origin: str
    folder: Path | None = None
    query: bytes | None = None
    schema: etree.XMLSchema | None = None
    result: bytes | None = None
    perform: PerformQuery | None = None

    def stylesheet(self, name: str) -> bytes | None:
        """A stylesheet in the folder of the package."""
        if self.folder is None or not _FILE_NAME.fullmatch(name):
            return None
        return _read_package_file(self.folder / name)


def package_of_step(step: str) -> str:
    """The built-in package of a step that is in no other package."""
    return _PACKAGE_OF_STEP.get(step, DOWNLOADER)


def packages_folder(settings: Settings) -> Path:
    """The folder of the packages of users."""
    named = settings.jobs.packages
    return Path(named) if named else Path(settings.archive.path) / "packages"


def packages(settings: Settings) -> dict[str, JobPackage]:
    """All packages by name: built-in ones, those of other distributions, those of users.

    UsageError names a package that cannot be used.
    """
    found = {name: JobPackage(name, text, "built in") for name, text in BUILT_IN.items()}
    for package in (*_installed_packages(), *_packages_in(packages_folder(settings))):
        if package.name in found:
            places = f"{found[package.name].origin} and {package.origin}"
            raise UsageError(f"there are two packages '{package.name}', {places}; rename one")
        found[package.name] = package
    return found


def package_named(name: str, settings: Settings) -> JobPackage:
    """One package; NotFound lists the others."""
    if name in BUILT_IN:
        return JobPackage(name, BUILT_IN[name], "built in")
    folder = packages_folder(settings) / name
    if _PACKAGE_NAME.fullmatch(name) and folder.is_dir():
        return read_package(folder)
    known = packages(settings)
    if name not in known:
        raise NotFound(f"unknown package '{name[:64]}'; choose one of {', '.join(known)}")
    return known[name]


def _installed_packages() -> Iterator[JobPackage]:
    for point in entry_points(group=ENTRY_POINT_GROUP):
        origin = f"provided by {point.dist.name}" if point.dist else ""
        yield JobPackage(point.name, origin, f"entry point {point.value}", perform=_loaded_when_run(point))


def _loaded_when_run(point: EntryPoint) -> PerformQuery:
    """Loads the code of a package when it is needed first: many are listed and few are used."""

    def perform(query: JobQuery, around: JobContext) -> bytes:
        try:
            work: Any = point.load()
        except (ImportError, AttributeError) as fault:
            raise UsageError(f"package '{point.name}' cannot be loaded ({fault}); install it again") from None
        return bytes(work(query, around))

    return perform


def _packages_in(folder: Path) -> Iterator[JobPackage]:
    if folder.is_dir():
        for one in sorted(folder.iterdir()):
            if one.is_dir() and not one.name.startswith("."):
                yield read_package(one)


def read_package(folder: Path) -> JobPackage:
    """A package that is a folder: `package.toml` or just `query.xsl`, further files by their usual names."""
    if not _PACKAGE_NAME.fullmatch(folder.name):
        raise UsageError(f"'{folder.name}' is not a package name; rename {folder} to small letters, digits, - and _")
    named = _settings_of(folder)
    query, schema, result = (_read_package_file(folder / named[key]) for key in ("query", "schema", "result"))
    if query is None:
        raise UsageError(f"package {folder} has no {named['query']}, which turns its queries into steps; add it")
    rules = None if schema is None else read_schema(schema, str(folder / named["schema"]))
    return JobPackage(folder.name, named["description"], str(folder), folder, query, rules, result)


def _settings_of(folder: Path) -> dict[str, str]:
    text = _read_package_file(folder / "package.toml")
    if text is None:
        return dict(_PACKAGE_KEYS)
    try:
        given = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise UsageError(f"{folder / 'package.toml'} is not valid TOML: {fault}; correct it") from None
    for key, value in given.items():
        if key not in _PACKAGE_KEYS or not isinstance(value, str):
            raise UsageError(f"'{key}' in {folder / 'package.toml'} has no meaning; use {', '.join(_PACKAGE_KEYS)}")
        if key != "description" and not _FILE_NAME.fullmatch(value):
            raise UsageError(f"'{key}' in {folder / 'package.toml'} must be the plain name of a file in its folder")
        if key != "description" and not (folder / value).is_file():
            raise UsageError(f"{folder / value} is named in package.toml but does not exist; add it")
    return _PACKAGE_KEYS | given


def _read_package_file(file: Path) -> bytes | None:
    """The bytes of a file of a package, None where there is no such file."""
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_XML_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; check its permissions") from None
    if len(data) > MAX_XML_BYTES:
        raise UsageError(f"{file} is larger than {MAX_XML_BYTES} bytes; make it smaller")
    return data


def stylesheet_of(package: str, job_file: bytes, settings: Settings) -> bytes | str | None:
    """The default stylesheet for a query's result: that of the query, else that of its package.

    `xslt` of a query names a file of its package, given whole here, or a
    stylesheet that Letopis brings, given by its name.
    """
    found = package_named(package, settings)
    name = read_xml(job_file, "the job file").get("xslt")
    if name is None:
        return found.result
    own = found.stylesheet(name)
    if own is None and name not in STYLESHEETS:
        raise UsageError(f"unknown stylesheet '{name}' in package '{package}'; name one of its files or "
                         f"{', '.join(STYLESHEETS)}")  # fmt: skip
    return name if own is None else own


def stylesheet_named(name: str, package: str, job_file: bytes, settings: Settings) -> bytes | str:
    """The stylesheet of a name: one of Letopis, a file of the package, or `own`."""
    if name in STYLESHEETS:
        return name
    if name != OWN_STYLESHEET:
        return package_named(package, settings).stylesheet(name) or name
    own = stylesheet_of(package, job_file, settings)
    if own is None:
        raise UsageError(f"neither the query nor its package has a stylesheet; name one: {', '.join(STYLESHEETS)}")
    return own


def stylesheet_names(package: str, job_file: bytes, settings: Settings) -> list[str]:
    """The stylesheets that a result can be shown with by name."""
    own = stylesheet_of(package, job_file, settings)
    return [*([OWN_STYLESHEET] if own is not None else []), *STYLESHEETS]
