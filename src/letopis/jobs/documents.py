"""XML of jobs: untrusted documents and schemas read within limits, results written as XML and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from io import BytesIO
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from letopis.archive.jobs import DONE, JobRow
from letopis.errors import UsageError
from letopis.lazy import etree
from letopis.model import from_millis, rfc3339

MAX_XML_BYTES = 1024 * 1024
MAX_XML_DEPTH = 64
_MAX_FAULT_LENGTH = 300


def read_xml(data: bytes, what: str) -> etree._Element:
    """The root of an XML text, comments and instructions taken out. UsageError says what `what` breaks and where."""
    if len(data) > MAX_XML_BYTES:
        raise UsageError(f"{what} has {len(data)} bytes; at most {MAX_XML_BYTES} are read, so make it shorter")
    parser = etree.XMLParser(
        resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as fault:
        raise UsageError(f"{what} is not well-formed XML: {str(fault)[:_MAX_FAULT_LENGTH]}; correct it") from None
    _refuse_types(root, what)
    _refuse_depth(root, what)
    return root


def _refuse_types(root: etree._Element, what: str) -> None:
    # The stubs do not know all attributes of a document.
    facts: Any = root.getroottree().docinfo
    if facts.doctype or facts.internalDTD is not None:
        raise UsageError(f"{what} carries a document type, and so perhaps entities; remove the <!DOCTYPE> part")


def _refuse_depth(root: etree._Element, what: str) -> None:
    depth = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > MAX_XML_DEPTH:
            raise UsageError(
                f"{what}, line {element.sourceline}: elements are nested deeper than {MAX_XML_DEPTH}; make it flatter"
            )


def read_schema(data: bytes, what: str) -> etree.XMLSchema:
    """A schema that names no other file. Raises UsageError."""
    root = read_xml(data, what)
    for part in root.iter("{*}include", "{*}import", "{*}redefine"):
        raise UsageError(f"{what}, line {part.sourceline}: a schema of a package is one file; take <{part.tag}> out")
    try:
        return etree.XMLSchema(root)
    except etree.XMLSchemaParseError as fault:
        raise UsageError(f"{what} is not a usable XML Schema: {str(fault)[:_MAX_FAULT_LENGTH]}; correct it") from None


def validate(root: etree._Element, what: str, schema: etree.XMLSchema) -> None:
    """Compares a document with a schema; UsageError names the first fault."""
    if not schema.validate(root):
        # The stubs do not know that a log can be indexed.
        faults: Any = schema.error_log
        fault = faults[0]
        raise UsageError(f"{what}, line {fault.line}: {fault.message[:_MAX_FAULT_LENGTH].rstrip('.')}; correct it")


def attributes_of(element: etree._Element) -> dict[str, str]:
    """The attributes of an element."""
    return {str(name): str(value) for name, value in element.attrib.items()}


def canonical_xml(root: etree._Element) -> bytes:
    """One text for all spellings of the same XML (C14N 2.0)."""
    return etree.tostring(root, method="c14n2", with_comments=False)


_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_safe(text: str) -> str:
    """The text with a replacement sign for each character that XML cannot hold."""
    return _FORBIDDEN.sub("\ufffd", text)


def start_tag(name: str, attributes: Mapping[str, Any], end: str = ">") -> str:
    """A start tag; values that are None are left out, lists become words."""
    given = "".join(
        f" {key}={quoteattr(xml_safe(_attribute_text(value)))}"
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}{end}"


def element(name: str, attributes: Mapping[str, Any], content: str | None = None) -> str:
    """An element with text inside, or an empty one."""
    if content is None:
        return start_tag(name, attributes, "/>")
    return f"{start_tag(name, attributes)}{escape(xml_safe(content))}</{name}>"


def parent_element(name: str, attributes: Mapping[str, Any], parts: Iterable[str]) -> bytes:
    """An element around others, one a line."""
    inside = "".join(f"  {part}\n" for part in parts)
    if not inside:
        return start_tag(name, attributes, "/>").encode()
    return f"{start_tag(name, attributes)}\n{inside}</{name}>".encode()


def row_element(name: str, row: Mapping[str, Any]) -> str:
    """A row as an element: fields are attributes, lists of objects are elements inside, what is empty is left out."""
    plain, inside = _split_row(name, row)
    return f"{start_tag(name, plain)}{''.join(inside)}</{name}>" if inside else start_tag(name, plain, "/>")


def _split_row(name: str, row: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Attributes, and elements for the objects inside: those like the row itself have its name, others their list's."""
    plain: dict[str, Any] = {}
    inside: list[str] = []
    for key, value in row.items():
        if _is_list_of_objects(value):
            inside += [row_element(name if one.keys() == row.keys() else key.removesuffix("s"), one) for one in value]
        elif value not in ("", (), []):
            plain[key] = value
    return plain, inside


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping)


def row_elements(name: str, attributes: Mapping[str, Any], row: str, found: Iterable[Mapping[str, Any]]) -> bytes:
    """An element with one element a row, and how many there are; objects among the attributes come before them."""
    parts = [row_element(row, one) for one in found]
    plain, beside = _split_row(name, attributes)
    return parent_element(name, {**plain, "count": len(parts)}, [*beside, *parts])


def _attribute_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, list | tuple):
        return " ".join(map(_attribute_text, value))
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def result_xml(job: JobRow, steps: bytes) -> bytes:
    """`<result id= package= started= finished= state=>` around one element a step, and `<error>` where one failed."""
    facts = {
        "id": job.id,
        "package": job.package,
        "name": job.name or None,
        "started": None if job.started is None else from_millis(job.started),
        "finished": None if job.finished is None else from_millis(job.finished),
        "state": job.state,
    }
    error = ""
    if job.state != DONE and job.message:
        error = element("error", {"class": job.error or None}, job.message) + "\n"
    inside = steps.rstrip(b"\n") + b"\n" if steps else b""
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n{start_tag("result", facts)}\n'
    return head.encode() + inside + error.encode() + b"</result>\n"


def result_json(result: bytes) -> str:
    """A result as one JSON object: `element`, the attributes, `text` where there is any, and `children`.

    Written piece by piece, so that a deep map needs no deep stack. UsageError where
    the parser's own bound of 2048 levels is met.
    """
    try:
        return "".join(_json_pieces(result))
    except etree.XMLSyntaxError as fault:
        raise UsageError(f"the result cannot be shown as JSON ({fault}); ask for a map with a depth") from None


def _json_pieces(result: bytes) -> Iterator[str]:
    before = ""
    # A result is our own, and a map may be deeper than the parser's usual bound.
    reading = etree.iterparse(
        BytesIO(result),
        events=("start", "end"),
        huge_tree=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
    )
    for event, element in reading:
        if event == "start":
            own = json.dumps({"element": str(element.tag), **attributes_of(element)}, ensure_ascii=False)
            yield f'{before}{own[:-1]}, "children": ['
            before = ""
        else:
            text = (element.text or "").strip() if not len(element) else ""
            yield f'], "text": {json.dumps(text, ensure_ascii=False)}}}' if text else "]}"
            before = ", "
