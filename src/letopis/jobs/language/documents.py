"""XML from strangers: no document types, no entities, no network, bounded size and depth."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from lxml import etree

from letopis.errors import UsageError

MOST_BYTES = 1024 * 1024
MOST_DEPTH = 64
_TOLD = 300
_XS = "{http://www.w3.org/2001/XMLSchema}"


def read_xml(data: bytes, what: str) -> etree._Element:
    """The root of an XML text, comments and instructions taken out. UsageError says what `what` breaks and where."""
    if len(data) > MOST_BYTES:
        raise UsageError(f"{what} has {len(data)} bytes; at most {MOST_BYTES} are read, so make it shorter")
    parser = etree.XMLParser(
        resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as fault:
        raise UsageError(f"{what} is not well-formed XML: {str(fault)[:_TOLD]}; correct it") from None
    _refuse_types(root, what)
    _refuse_depth(root, what)
    return root


def _refuse_types(root: etree._Element, what: str) -> None:
    # The stubs do not know all that a document tells about itself.
    facts: Any = root.getroottree().docinfo
    if facts.doctype or facts.internalDTD is not None:
        raise UsageError(f"{what} carries a document type, and so perhaps entities; remove the <!DOCTYPE> part")


def _refuse_depth(root: etree._Element, what: str) -> None:
    depth = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > MOST_DEPTH:
            raise UsageError(
                f"{what}, line {element.sourceline}: elements are nested deeper than {MOST_DEPTH}; make it flatter"
            )


def attributes(element: etree._Element) -> dict[str, str]:
    """The attributes of an element."""
    return {str(name): str(value) for name, value in element.attrib.items()}


def canonical(root: etree._Element) -> bytes:
    """One text for all spellings of the same XML (C14N 2.0)."""
    return etree.tostring(root, method="c14n2", with_comments=False)


def schema() -> bytes:
    """The W3C XML Schema of the language."""
    return files("letopis.jobs.language").joinpath("query.xsd").read_bytes()


@cache
def _language() -> etree.XMLSchema:
    return read_schema(schema(), "query.xsd")


@cache
def step_names() -> tuple[str, ...]:
    """The names of all steps, in the order of the schema."""
    root = etree.fromstring(schema())
    found = root.iterfind(f"{_XS}complexType[@name='Query']/{_XS}choice/{_XS}element")
    return tuple(element.get("name", "") for element in found)


def read_schema(data: bytes, what: str) -> etree.XMLSchema:
    """A schema that names no other file. Raises UsageError."""
    root = read_xml(data, what)
    for part in root.iter("{*}include", "{*}import", "{*}redefine"):
        raise UsageError(f"{what}, line {part.sourceline}: a schema of a package is one file; take <{part.tag}> out")
    try:
        return etree.XMLSchema(root)
    except etree.XMLSchemaParseError as fault:
        raise UsageError(f"{what} is not a usable XML Schema: {str(fault)[:_TOLD]}; correct it") from None


def validate(root: etree._Element, what: str, rules: etree.XMLSchema | None = None) -> None:
    """Holds a document against a schema, that of the language where none is given; the first fault is told."""
    rules = rules or _language()
    if not rules.validate(root):
        faults: Any = rules.error_log
        fault = faults[0]
        raise UsageError(f"{what}, line {fault.line}: {fault.message[:_TOLD].rstrip('.')}; correct it")
