"""A job file as a value: read, held against the schema, put into one spelling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy

from lxml import etree

from letopis.archive import utc_now
from letopis.config import Settings
from letopis.errors import UsageError
from letopis.jobs.language.documents import attributes, canonical, read_xml, step_names, validate
from letopis.jobs.language.packages import BUILT_IN, DOWNLOADER, Package, home_of, package_named
from letopis.jobs.language.patterns import Pattern
from letopis.jobs.language.stylesheets import STYLESHEETS, run_stylesheet
from letopis.jobs.query import USE_DRIVEN, Query
from letopis.model import parse_duration, parse_time
from letopis.search import parse_question
from letopis.urls import parse_user, rules_from_element, site

ROOTS = ("query", "senginequery")
_WHAT = "the job file"
_PASSING = ("queryqueue", "idquery", "iduser")
"""Attributes that the document's system adds on the way; they mean nothing here."""


def parse(data: bytes, settings: Settings | None = None) -> Query:
    """Reads a job file; UsageError names the line and the element of what is wrong.

    A query of a package that is not built in is held against that package
    where `settings` tell where packages lie, else when it is performed.
    """
    root = _root(read_xml(data, _WHAT))
    package = root.get("package") or _home(root)
    if package in BUILT_IN:
        _check(root)
        _check_style(root, None)
    else:
        _check_envelope(root)
        if settings is not None:
            made = package_named(package, settings)
            _check_style(root, made)
            steps_of(root, made)
    return Query(
        package=package,
        name=root.get("name", "").strip(),
        priority=int(root.get("priority", "0")),
        refresh=_refresh(root),
        permission=int(root.get("permission", "1")),
        xml=canonical(root),
    )


def steps_of(root: etree._Element, package: Package) -> list[etree._Element]:
    """The known steps that a query comes down to, by its package's own schema and stylesheet."""
    if package.name in BUILT_IN or package.perform is not None:
        return list(root)
    if package.schema is not None:
        for child in root:
            validate(_alone(child), f"the query of package '{package.name}'", package.schema)
    if package.query is None:
        raise UsageError(f"package '{package.name}' has no query.xsl that turns its queries into steps; add one")
    made = run_stylesheet(canonical(root), package.query, f"query.xsl of package '{package.name}'")
    expanded = _root(read_xml(made, f"what query.xsl of package '{package.name}' made"))
    expanded.set("package", DOWNLOADER)
    _check(expanded, f"what query.xsl of package '{package.name}' made")
    return list(expanded)


def read_query(query: Query) -> etree._Element:
    """The root of a query that was parsed before."""
    return _root(read_xml(query.xml, _WHAT))


def _root(found: etree._Element) -> etree._Element:
    if found.tag not in ROOTS:
        raise UsageError(
            f"{_WHAT}, line {found.sourceline}: the root is <{str(found.tag)[:64]}>; write <query> around the steps"
        )
    found.tag = ROOTS[0]
    for name in _PASSING:
        found.attrib.pop(name, "")
    return found


def _home(root: etree._Element) -> str:
    """The package of a query that names none: that of its slowest step."""
    homes = [home_of(str(child.tag)) for child in root]
    return DOWNLOADER if not homes or DOWNLOADER in homes else homes[0]


def _alone(child: etree._Element) -> etree._Element:
    """An element as a document of its own, which remembers its line."""
    lone = copy(child)
    lone.tail = None
    return lone


def _refresh(root: etree._Element) -> str:
    text = root.get("refresh", "").strip()
    if text and text != USE_DRIVEN:
        try:
            usable = parse_duration(text) > 0
        except UsageError:
            usable = False
        if not usable:
            raise UsageError(
                f"{_WHAT}, line {root.sourceline}: refresh of <query> is '{text[:40]}'; write 30m, 1h, 7d or use"
            )
    return text


def _check_style(root: etree._Element, package: Package | None) -> None:
    """The stylesheet that a query names must be there: one of Letopis, or a file of its package."""
    name = root.get("xslt")
    if name is None or name in STYLESHEETS or (package is not None and package.stylesheet(name) is not None):
        return
    known = ", ".join(STYLESHEETS)
    raise UsageError(
        f"{_WHAT}, line {root.sourceline}: xslt of <query>: there is no stylesheet '{name}'; known are {known}"
    )


def _check_envelope(root: etree._Element) -> None:
    """Only the attributes of the root: what stands inside is the package's own."""
    bare = etree.Element(root.tag, attributes(root))
    etree.SubElement(bare, "cleaner")
    validate(bare, _WHAT)
    if not len(root):
        raise UsageError(f"{_WHAT}, line {root.sourceline}: <query> holds nothing; write the question into it")


def _check(root: etree._Element, what: str = _WHAT) -> None:
    """The schema first, then what a schema cannot say: addresses, times, questions, rules."""
    for child in root:
        if child.tag not in step_names():
            known = ", ".join(step_names())
            raise UsageError(f"{what}, line {child.sourceline}: <{str(child.tag)[:64]}> is no step; known are {known}")
    validate(root, what)
    for element in root.iter():
        for name, text, usable in _texts(element):
            try:
                usable(text)
            except UsageError as fault:
                raise UsageError(f"{what}, line {element.sourceline}: {name} of <{element.tag}>: {fault}") from None
    try:
        rules_from_element(root)
    except UsageError as fault:
        raise UsageError(f"{what}: in <urltransform>: {fault}") from None


def _texts(element: etree._Element) -> Iterator[tuple[str, str, Callable[[str], object]]]:
    """The parts of an element that have a form of their own, each with what can read it."""
    for name in ("at", "from", "to"):
        if name in element.attrib:
            yield name, element.get(name, ""), _time
    for name in ("site", "url"):
        for word in element.get(name, "").split():
            yield name, word, site if name == "site" else parse_user
    if element.tag in ("url", "domain", "allow", "deny"):
        yield "the text", element.text or "", parse_user
    if element.tag in ("include", "exclude"):
        yield "the text", (element.text or "").strip(), Pattern
    if element.tag == "search":
        yield "the text", element.text or "", _question(element)


def _time(text: str) -> object:
    return parse_time(text, utc_now())


def _question(element: etree._Element) -> Callable[[str], object]:
    blocks = tuple(element.get("block", "").split())
    sites = ("anywhere",) if element.get("project") or element.get("lang") else tuple(element.get("site", "").split())
    return lambda text: parse_question(text.strip(), sites=sites, blocks=blocks)
