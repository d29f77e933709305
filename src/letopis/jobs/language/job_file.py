"""A job file as a value: parsed, validated, in one spelling, and refused where a stranger may not ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from ipaddress import ip_address
from urllib.parse import urlsplit

import regex
from lxml import etree

from letopis.archive import utc_now
from letopis.config import Settings
from letopis.errors import Refused, UsageError
from letopis.fetch import is_public
from letopis.index.query_language import parse_word_query
from letopis.jobs.language.documents import attributes_of, canonical_xml, read_xml
from letopis.jobs.language.packages import (
    BUILT_IN,
    DOWNLOADER,
    STYLESHEETS,
    JobPackage,
    package_named,
    package_of_step,
    run_stylesheet,
)
from letopis.jobs.language.schema import step_names, validate
from letopis.jobs.query import REFRESH_BY_USE, JobQuery
from letopis.model import parse_duration, parse_time
from letopis.urls import parse_user_url, rules_from_element, site

MAX_PATTERN_LENGTH = 1000
_MAX_SUBJECT = 2048
_PATTERN_SECONDS = 0.25


class UrlPattern:
    """A pattern that is searched in addresses; UsageError for one that is none, or that takes too long."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN_LENGTH:
            raise UsageError(f"the pattern '{text[:40]}...' is longer than {MAX_PATTERN_LENGTH} characters; shorten it")
        try:
            self._compiled = regex.compile(text)
        except (regex.error, RecursionError, OverflowError) as fault:
            raise UsageError(f"'{text}' is not a regular expression ({fault}); correct it") from None

    def found_in(self, url: str) -> bool:
        """Whether it occurs in the beginning of an address."""
        try:
            return self._compiled.search(url[:_MAX_SUBJECT], timeout=_PATTERN_SECONDS) is not None
        except TimeoutError:
            raise UsageError(f"the pattern '{self._compiled.pattern}' takes too long; write a simpler one") from None


ROOTS = ("query", "senginequery")
_JOB_FILE = "the job file"
_IGNORED_ATTRIBUTES = ("queryqueue", "idquery", "iduser")
"""Attributes that the document's system adds on the way; they mean nothing here."""


def parse_job_file(data: bytes, settings: Settings | None = None) -> JobQuery:
    """Reads a job file; UsageError names the line and the element of what is wrong.

    A query of a package that is not built in is held against that package
    where `settings` tell where packages lie, else when it is performed.
    """
    root = _root(read_xml(data, _JOB_FILE))
    package = root.get("package") or _default_package(root)
    if package in BUILT_IN:
        _check(root)
        _check_style(root, None)
    else:
        _check_envelope(root)
        if settings is not None:
            made = package_named(package, settings)
            _check_style(root, made)
            steps_of(root, made)
    return JobQuery(
        package=package,
        name=root.get("name", "").strip(),
        priority=int(root.get("priority", "0")),
        refresh=_refresh(root),
        permission=int(root.get("permission", "1")),
        xml=canonical_xml(root),
    )


def steps_of(root: etree._Element, package: JobPackage) -> list[etree._Element]:
    """The known steps that a query comes down to, by its package's own schema and stylesheet."""
    if package.name in BUILT_IN or package.perform is not None:
        return list(root)
    if package.schema is not None:
        for child in root:
            validate(_as_document(child), f"the query of package '{package.name}'", package.schema)
    if package.query is None:
        raise UsageError(f"package '{package.name}' has no query.xsl that turns its queries into steps; add one")
    made = run_stylesheet(canonical_xml(root), package.query, f"query.xsl of package '{package.name}'")
    expanded = _root(read_xml(made, f"what query.xsl of package '{package.name}' made"))
    expanded.set("package", DOWNLOADER)
    _check(expanded, f"what query.xsl of package '{package.name}' made")
    return list(expanded)


def query_root(query: JobQuery) -> etree._Element:
    """The root of a query that was parsed before."""
    return _root(read_xml(query.xml, _JOB_FILE))


def _root(found: etree._Element) -> etree._Element:
    if found.tag not in ROOTS:
        raise UsageError(
            f"{_JOB_FILE}, line {found.sourceline}: the root is <{str(found.tag)[:64]}>; write <query> around the steps"
        )
    found.tag = ROOTS[0]
    for name in _IGNORED_ATTRIBUTES:
        found.attrib.pop(name, "")
    return found


def _default_package(root: etree._Element) -> str:
    """The package of a query that names none: that of its slowest step."""
    homes = [package_of_step(str(child.tag)) for child in root]
    return DOWNLOADER if not homes or DOWNLOADER in homes else homes[0]


def _as_document(child: etree._Element) -> etree._Element:
    """An element as a document of its own, which remembers its line."""
    lone = copy(child)
    lone.tail = None
    return lone


def _refresh(root: etree._Element) -> str:
    text = root.get("refresh", "").strip()
    if text and text != REFRESH_BY_USE:
        try:
            usable = parse_duration(text) > 0
        except UsageError:
            usable = False
        if not usable:
            raise UsageError(
                f"{_JOB_FILE}, line {root.sourceline}: refresh of <query> is '{text[:40]}'; write 30m, 1h, 7d or use"
            )
    return text


def _check_style(root: etree._Element, package: JobPackage | None) -> None:
    """The stylesheet that a query names must be there: one of Letopis, or a file of its package."""
    name = root.get("xslt")
    if name is None or name in STYLESHEETS or (package is not None and package.stylesheet(name) is not None):
        return
    known = ", ".join(STYLESHEETS)
    raise UsageError(
        f"{_JOB_FILE}, line {root.sourceline}: xslt of <query>: there is no stylesheet '{name}'; known are {known}"
    )


def _check_envelope(root: etree._Element) -> None:
    """Only the attributes of the root: what stands inside is the package's own."""
    bare = etree.Element(root.tag, attributes_of(root))
    etree.SubElement(bare, "cleaner")
    validate(bare, _JOB_FILE)
    if not len(root):
        raise UsageError(f"{_JOB_FILE}, line {root.sourceline}: <query> holds nothing; write the question into it")


def _check(root: etree._Element, what: str = _JOB_FILE) -> None:
    """The schema first, then what a schema cannot say: addresses, times, questions, rules."""
    for child in root:
        if child.tag not in step_names():
            known = ", ".join(step_names())
            raise UsageError(f"{what}, line {child.sourceline}: <{str(child.tag)[:64]}> is no step; known are {known}")
    validate(root, what)
    for element in root.iter():
        for name, text, usable in _checked_parts(element):
            try:
                usable(text)
            except UsageError as fault:
                raise UsageError(f"{what}, line {element.sourceline}: {name} of <{element.tag}>: {fault}") from None
    try:
        rules_from_element(root)
    except UsageError as fault:
        raise UsageError(f"{what}: in <urltransform>: {fault}") from None


def _checked_parts(element: etree._Element) -> Iterator[tuple[str, str, Callable[[str], object]]]:
    """The parts of an element that have a form of their own, each with what can read it."""
    for name in ("at", "from", "to"):
        if name in element.attrib:
            yield name, element.get(name, ""), _time
    for name in ("site", "url"):
        for word in element.get(name, "").split():
            yield name, word, site if name == "site" else parse_user_url
    if element.tag in ("url", "domain", "allow", "deny"):
        yield "the text", element.text or "", parse_user_url
    if element.tag in ("include", "exclude"):
        yield "the text", (element.text or "").strip(), UrlPattern
    if element.tag == "search":
        yield "the text", element.text or "", _question(element)


def _time(text: str) -> object:
    return parse_time(text, utc_now())


def _question(element: etree._Element) -> Callable[[str], object]:
    blocks = tuple(element.get("block", "").split())
    sites = ("anywhere",) if element.get("project") or element.get("lang") else tuple(element.get("site", "").split())
    return lambda text: parse_word_query(text.strip(), sites=sites, blocks=blocks)


_MAINTENANCE_STEPS = ("cleaner", "compact")


def refuse_private_urls(addresses: Iterable[str]) -> None:
    """Raises Refused for the first address that is private, loopback or link-local by its very text."""
    for address in addresses:
        if _is_private(address):
            raise Refused(f"{address} is a private address; the owner can allow them with fetch.private")


def urls_of_query(query: JobQuery) -> Iterator[str]:
    """What a question would fetch, as far as it says so itself."""
    for element in query_root(query).iter("url"):
        yield from (element.text or "").split()


def refuse_maintenance(query: JobQuery) -> None:
    """Raises Refused for a question that looks after the archive itself, which is the owner's business."""
    for element in query_root(query).iter(*_MAINTENANCE_STEPS):
        raise Refused(f"<{element.tag}> looks after the whole archive; only an owner may ask for it")


def _is_private(address: str) -> bool:
    try:
        host = urlsplit(parse_user_url(address)).hostname or ""
    except UsageError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return not is_public(host)
