"""Job files: the schema generated from all operations, and how a file is read, validated and put into canonical form.

The root `<query package= name= priority= refresh= permission= xslt=>` contains the steps. The elements of steps that
are operations follow from their parameters; `query.xsd` defines the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from functools import cache
from importlib.resources import files
from typing import Any
from xml.sax.saxutils import quoteattr

from letopis.archive import OWN, utc_now
from letopis.archive.jobs import REFRESH_BY_USE, JobQuery
from letopis.bounded import check_pattern
from letopis.config import Settings, parse_size
from letopis.errors import Refused, UsageError
from letopis.jobs.documents import attributes_of, canonical_xml, read_schema, read_xml, validate
from letopis.jobs.packages import (
    BUILT_IN,
    DOWNLOADER,
    STYLESHEETS,
    JobPackage,
    package_named,
    package_of_step,
    run_stylesheet,
)
from letopis.lazy import etree, regex
from letopis.model import parse_duration, parse_time
from letopis.operations.operation import Operation, all_operations
from letopis.operations.parameters import Parameter, bind
from letopis.urls import parse_user_url, site
from letopis.urls.rules import rules_from_element

_XS = "{http://www.w3.org/2001/XMLSchema}"
_PLACE = b"<!-- operations -->"
_TYPES = {
    "text": "Text", "integer": "xs:int", "number": "xs:decimal", "flag": "xs:boolean",
    "time": "Text", "duration": "Text", "texts": "Text",
}  # fmt: skip
_JOB_FILE = "the job file"
_ROOTS = ("query", "senginequery")
_IGNORED_ATTRIBUTES = ("queryqueue", "idquery", "iduser")
"""Attributes that other systems add on the way; they mean nothing here."""
MAX_PATTERN_LENGTH = 1000
_MAX_SUBJECT = 2048
_PATTERN_SECONDS = 0.25


# The schema


@cache
def step_operations() -> dict[str, Operation[Any, Any]]:
    """The operations that are steps, by the names of their elements."""
    return {one.step: one for one in all_operations().values() if one.step}


def language_schema() -> bytes:
    """The W3C XML Schema of job files."""
    steps = "\n      ".join(map(schema_of, step_operations().values()))
    written = files("letopis.jobs").joinpath("language", "query.xsd").read_bytes()
    return written.replace(_PLACE, steps.encode())


@cache
def _compiled_schema() -> etree.XMLSchema:
    return read_schema(language_schema(), "query.xsd")


@cache
def step_names() -> tuple[str, ...]:
    """The names of all steps, in the order of the schema."""
    root = etree.fromstring(language_schema())
    found = root.iterfind(f"{_XS}complexType[@name='Query']/{_XS}choice/{_XS}element")
    return tuple(element.get("name", "") for element in found)


def text_parameter(operation: Operation[Any, Any]) -> Parameter | None:
    """The parameter that may stand as the text of the element: the first word of the verb."""
    return next((one for one in operation.parameters_in("job") if one.declared.argument and one.kind == "text"), None)


def given_values(operation: Operation[Any, Any], element: etree._Element) -> dict[str, Any]:
    """What the element of a step says, by alias: its attributes, its text, and the texts of child elements."""
    given: dict[str, Any] = {}
    text = (element.text or "").strip()
    for one in operation.parameters_in("job"):
        children = [(child.text or "").strip() for child in element.iterchildren(one.alias)]
        said = element.get(one.attribute)
        if children:
            given[one.alias] = children if one.repeated else children[-1]
        elif said is not None:
            given[one.alias] = said.split() if one.repeated else said
        elif one is text_parameter(operation) and text:
            given[one.alias] = text
    return given


def _is_attribute(one: Parameter) -> bool:
    return not one.repeated or bool(one.declared.attribute)


def schema_of(operation: Operation[Any, Any]) -> str:
    """The element of a step: an attribute for each parameter, a child element for each that may be repeated."""
    known = operation.parameters_in("job")
    text = text_parameter(operation)
    attributes = "".join(_attribute(one, one.required and one is not text) for one in known if _is_attribute(one))
    children = "".join(
        f'<xs:element name={quoteattr(one.alias)} type="Text" minOccurs="0" maxOccurs="unbounded"/>'
        for one in known
        if not _is_attribute(one)
    )
    inside = f"<xs:sequence>{children}</xs:sequence>" if children else ""
    mixed = ' mixed="true"' if text is not None else ""
    inside = f"<xs:complexType{mixed}>{inside}{attributes}</xs:complexType>"
    return f'<xs:element name="{operation.step}">{inside}</xs:element>'


def _attribute(one: Parameter, required: bool) -> str:
    use = ' use="required"' if required else ""
    if one.choices:
        values = "".join(f"<xs:enumeration value={quoteattr(choice)}/>" for choice in one.choices)
        simple = f'<xs:simpleType><xs:restriction base="xs:token">{values}</xs:restriction></xs:simpleType>'
        return f"<xs:attribute name={quoteattr(one.attribute)}{use}>{simple}</xs:attribute>"
    limits = _limits(one)
    if limits:
        simple = f'<xs:simpleType><xs:restriction base="{_TYPES[one.kind]}">{limits}</xs:restriction></xs:simpleType>'
        return f"<xs:attribute name={quoteattr(one.attribute)}{use}>{simple}</xs:attribute>"
    return f'<xs:attribute name={quoteattr(one.attribute)} type="{_TYPES[one.kind]}"{use}/>'


def _limits(one: Parameter) -> str:
    """The facets that bound a number."""
    if one.kind not in ("integer", "number"):
        return ""
    bounds = {"minInclusive": one.declared.at_least, "maxInclusive": one.declared.at_most}
    return "".join(f'<xs:{name} value="{value:.10g}"/>' for name, value in bounds.items() if value is not None)


# Reading


class UrlPattern:
    """A pattern that is searched in addresses; UsageError if it is invalid or takes too long."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN_LENGTH:
            raise UsageError(f"the pattern '{text[:40]}...' is longer than {MAX_PATTERN_LENGTH} characters; shorten it")
        check_pattern(text)
        self._compiled = regex.compile(text)

    def found_in(self, url: str) -> bool:
        """Whether it occurs in the beginning of an address."""
        try:
            return self._compiled.search(url[:_MAX_SUBJECT], timeout=_PATTERN_SECONDS) is not None
        except TimeoutError:
            raise UsageError(f"the pattern '{self._compiled.pattern}' takes too long; write a simpler one") from None


def parse_job_file(data: bytes, settings: Settings | None = None) -> JobQuery:
    """Reads a job file; UsageError names the line and the element of what is wrong.

    A query of a package that is not built in is compared with that package
    where `settings` tell where packages lie, else when it is run.
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
            _expanded(root, made)
    return JobQuery(
        package=package, name=root.get("name", "").strip(), priority=int(root.get("priority", "0")),
        refresh=_refresh(root), permission=int(root.get("permission", "1")), xml=canonical_xml(root),
        savefile=root.get("savefile", ""),
    )  # fmt: skip


def query_steps(query: JobQuery, package: JobPackage) -> list[etree._Element]:
    """The known steps that a query comes down to, by its package's own schema and stylesheet."""
    return _expanded(_root(read_xml(query.xml, _JOB_FILE)), package)


def refuse_steps(query: JobQuery, rights: int, settings: Settings) -> None:
    """Raises Refused for a query that needs more than the rights of whoever asks: a step of it, or its file."""
    if query.savefile and not rights & OWN:
        raise Refused("savefile writes to the folder of the archive and needs an owner of it; leave it out")
    for operation in _operations_of(query, settings):
        require_right(operation, rights)


def with_permission(query: JobQuery, settings: Settings) -> JobQuery:
    """The query; where a step answers what only owners may ask, and it does not say who sees it, only they do."""
    is_private = any(one.right == OWN and not one.changes for one in _operations_of(query, settings))
    if is_private and read_xml(query.xml, _JOB_FILE).get("permission") is None:
        return query._replace(permission=query.permission | OWN)
    return query


def _operations_of(query: JobQuery, settings: Settings) -> list[Operation[Any, Any]]:
    """The operations that its steps are; packages that work by themselves have none."""
    package = package_named(query.package, settings)
    steps = [] if package.perform is not None else query_steps(query, package)
    found = (step_operations().get(str(step.tag)) for step in steps)
    return [operation for operation in found if operation is not None]


def require_right(operation: Operation[Any, Any], rights: int) -> None:
    """Raises Refused where a step needs more than the rights of whoever asks."""
    if rights & operation.right != operation.right:
        raise Refused(f"<{operation.step}> needs more rights than you have; ask an owner of this archive")


def fetched_urls(query: JobQuery) -> Iterator[str]:
    """What a query would fetch, as far as it says so itself."""
    root = read_xml(query.xml, _JOB_FILE)
    texts = [element.text or "" for element in root.iter("url")]
    texts += [element.get("url", "") for element in root.iter("diff")]
    for text in texts:
        # A package may call anything a url; what is none is fetched by nobody.
        with suppress(UsageError):
            yield parse_user_url(text.strip())


def _expanded(root: etree._Element, package: JobPackage) -> list[etree._Element]:
    if package.name in BUILT_IN or package.perform is not None:
        return list(root)
    if package.schema is not None:
        for child in root:
            validate(_as_document(child), f"the query of package '{package.name}'", package.schema)
    if package.query is None:
        raise UsageError(f"package '{package.name}' has no query.xsl that turns its queries into steps; add one")
    what = f"the output of query.xsl of package '{package.name}'"
    made = run_stylesheet(canonical_xml(root), package.query, f"query.xsl of package '{package.name}'")
    expanded = _root(read_xml(made, what))
    expanded.set("package", DOWNLOADER)
    _check(expanded, what)
    return list(expanded)


def _root(found: etree._Element) -> etree._Element:
    if found.tag not in _ROOTS:
        raise UsageError(
            f"{_JOB_FILE}, line {found.sourceline}: the root is <{str(found.tag)[:64]}>; write <query> around the steps"
        )
    found.tag = _ROOTS[0]
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


# Checking


def _check_style(root: etree._Element, package: JobPackage | None) -> None:
    """The stylesheet that a query names must be there: one of Letopis, or a file of its package."""
    name = root.get("xslt")
    if name is None or name in STYLESHEETS or (package is not None and package.stylesheet(name) is not None):
        return
    known = ", ".join(STYLESHEETS)
    raise UsageError(
        f"{_JOB_FILE}, line {root.sourceline}: xslt of <query>: unknown stylesheet '{name}'; choose one of {known}"
    )


def _check_envelope(root: etree._Element) -> None:
    """Only the attributes of the root: what stands inside is the package's own."""
    bare = etree.Element(root.tag, attributes_of(root))
    etree.SubElement(bare, "copytocache")
    validate(bare, _JOB_FILE, _compiled_schema())
    if not len(root):
        raise UsageError(f"{_JOB_FILE}, line {root.sourceline}: <query> holds nothing; write its steps into it")


def _check(root: etree._Element, what: str = _JOB_FILE) -> None:
    """Parameters as all doors read them, the schema, then what a schema cannot say: addresses, times, rules."""
    for child in root:
        if child.tag not in step_names():
            known = ", ".join(step_names())
            raise UsageError(
                f"{what}, line {child.sourceline}: <{str(child.tag)[:64]}> is not a step; choose one of {known}"
            )
        _check_parameters(child, what)
    validate(root, what, _compiled_schema())
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


def _check_parameters(step: etree._Element, what: str) -> None:
    """The parameters of an operation, as all doors read them."""
    operation = step_operations().get(str(step.tag))
    if operation is not None:
        try:
            bind(operation.parameters, given_values(operation, step), utc_now())
        except UsageError as fault:
            raise UsageError(f"{what}, line {step.sourceline}: in <{step.tag}>: {fault}") from None


def _checked_parts(element: etree._Element) -> Iterator[tuple[str, str, Callable[[str], object]]]:
    """The parts of an element that have a form of their own, each with what can read it."""
    for name in ("at", "from", "to"):
        if name in element.attrib:
            yield name, element.get(name, ""), _time
    for name, usable in (("max_bytes", parse_size), ("max_time", parse_duration), ("delay", parse_duration)):
        if element.tag == "download" and name in element.attrib:
            yield name, element.get(name, ""), usable
    if "url" in element.attrib:
        yield "url", element.get("url", ""), parse_user_url
    for word in element.get("site", "").split():
        yield "site", word, site
    if element.tag in ("url", "domain", "allow", "deny"):
        yield "the text", element.text or "", parse_user_url
    if element.tag in ("include", "exclude"):
        yield "the text", (element.text or "").strip(), UrlPattern


def _time(text: str) -> object:
    return parse_time(text, utc_now())
