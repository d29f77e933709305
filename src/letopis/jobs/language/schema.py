"""The schema of job files: what is written down in `query.xsd`, and an element for every operation with a step."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any
from xml.sax.saxutils import quoteattr

from lxml import etree

from letopis.errors import UsageError
from letopis.jobs.language.documents import read_xml
from letopis.operations import Operation, Parameter
from letopis.operations.registry import all_operations

_XS = "{http://www.w3.org/2001/XMLSchema}"
_MAX_FAULT_LENGTH = 300
_PLACE = b"<!-- operations -->"
_TYPES = {
    "text": "Text", "integer": "xs:int", "number": "xs:decimal", "flag": "xs:boolean",
    "time": "Text", "duration": "Text", "texts": "Text",
}  # fmt: skip


def language_schema() -> bytes:
    """The W3C XML Schema of the language."""
    steps = "\n      ".join(schema_of(one) for one in all_operations().values() if one.step)
    written = files("letopis.jobs.language").joinpath("query.xsd").read_bytes()
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


def read_schema(data: bytes, what: str) -> etree.XMLSchema:
    """A schema that names no other file. Raises UsageError."""
    root = read_xml(data, what)
    for part in root.iter("{*}include", "{*}import", "{*}redefine"):
        raise UsageError(f"{what}, line {part.sourceline}: a schema of a package is one file; take <{part.tag}> out")
    try:
        return etree.XMLSchema(root)
    except etree.XMLSchemaParseError as fault:
        raise UsageError(f"{what} is not a usable XML Schema: {str(fault)[:_MAX_FAULT_LENGTH]}; correct it") from None


def validate(root: etree._Element, what: str, rules: etree.XMLSchema | None = None) -> None:
    """Holds a document against a schema, that of the language where none is given; the first fault is told."""
    rules = rules or _compiled_schema()
    if not rules.validate(root):
        faults: Any = rules.error_log
        fault = faults[0]
        raise UsageError(f"{what}, line {fault.line}: {fault.message[:_MAX_FAULT_LENGTH].rstrip('.')}; correct it")


def text_parameter(operation: Operation[Any, Any]) -> Parameter | None:
    """The parameter that may stand as the text of the element: the first word of the verb."""
    return next((one for one in operation.parameters_in("job") if one.declared.argument and one.kind == "text"), None)


def schema_of(operation: Operation[Any, Any]) -> str:
    """The element of a step: an attribute for each parameter, a child element for each that may be repeated."""
    known = operation.parameters_in("job")
    text = text_parameter(operation)
    attributes = "".join(_attribute(one, one.required and one is not text) for one in known if not one.repeated)
    children = "".join(
        f'<xs:element name={quoteattr(one.alias)} type="Text" minOccurs="0" maxOccurs="unbounded"/>'
        for one in known
        if one.repeated
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
        return f"<xs:attribute name={quoteattr(one.alias)}{use}>{simple}</xs:attribute>"
    limits = _limits(one)
    if limits:
        simple = f'<xs:simpleType><xs:restriction base="{_TYPES[one.kind]}">{limits}</xs:restriction></xs:simpleType>'
        return f"<xs:attribute name={quoteattr(one.alias)}{use}>{simple}</xs:attribute>"
    return f'<xs:attribute name={quoteattr(one.alias)} type="{_TYPES[one.kind]}"{use}/>'


def _limits(one: Parameter) -> str:
    """The facets that bound a number."""
    if one.kind not in ("integer", "number"):
        return ""
    bounds = {"minInclusive": one.declared.at_least, "maxInclusive": one.declared.at_most}
    return "".join(f'<xs:{name} value="{value:.10g}"/>' for name, value in bounds.items() if value is not None)
