"""A Page as JSON and as XML, and back from JSON."""

from __future__ import annotations

import json
import re
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from letopis.model import Block, BlockKind, Link, LinkType, Page, rfc3339

if TYPE_CHECKING:
    from lxml import etree

_TEXTS = (
    "url",
    "content_type",
    "charset",
    "title",
    "description",
    "keywords",
    "language",
    "declared_language",
    "canonical",
    "refresh",
)


def to_json(page: Page, indent: int | None = None) -> str:
    """One JSON object; blocks as `{"kind", "text"}`, links as `{"target", "type", "text", "rel", "title"}`."""
    data: dict[str, Any] = {name: getattr(page, name) for name in _TEXTS}
    data["robots"] = sorted(page.robots)
    data["published"] = rfc3339(page.published) if page.published else None
    data["modified"] = rfc3339(page.modified) if page.modified else None
    data["blocks"] = [block._asdict() for block in page.blocks]
    data["links"] = [link._asdict() for link in page.links]
    data["warnings"] = list(page.warnings)
    data["frame"] = sorted(page.frame)
    return json.dumps(data, ensure_ascii=True, indent=indent)


def page_from_json(text: str | bytes) -> Page:
    """The inverse of `to_json`. Raises ValueError, TypeError or KeyError for anything else."""
    data = json.loads(text)
    told: dict[str, Any] = {name: str(data[name]) for name in _TEXTS}
    return Page(
        **told,
        robots=frozenset(map(str, data["robots"])),
        published=_time(data["published"]),
        modified=_time(data["modified"]),
        blocks=tuple(Block(BlockKind(one["kind"]), str(one["text"])) for one in data["blocks"]),
        links=tuple(_link(one) for one in data["links"]),
        warnings=tuple(map(str, data["warnings"])),
        frame=frozenset(map(int, data["frame"])),
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _link(data: dict[str, str]) -> Link:
    return Link(str(data["target"]), LinkType(data["type"]), str(data["text"]), str(data["rel"]), str(data["title"]))


def to_xml(page: Page) -> str:
    """`<page url= ...>` with `<block kind=>`, `<link target= type= ...>` and `<warning>` elements."""
    from lxml import etree  # noqa: PLC0415 - nothing else here needs it, and every crawl starts

    root = etree.Element("page")
    for name in _TEXTS:
        _set(root, name.replace("_", "-"), getattr(page, name))
    _set(root, "robots", " ".join(sorted(page.robots)))
    for name, moment in (("published", page.published), ("modified", page.modified)):
        _set(root, name, rfc3339(moment) if moment else "")
    for at, block in enumerate(page.blocks):
        element = etree.SubElement(root, "block", kind=str(block.kind))
        _set(element, "frame", "yes" if at in page.frame else "")
        element.text = _fit(block.text)
    for link in page.links:
        element = etree.SubElement(root, "link", target=_fit(link.target), type=str(link.type))
        _set(element, "rel", link.rel)
        _set(element, "title", link.title)
        element.text = _fit(link.text)
    for warning in page.warnings:
        etree.SubElement(root, "warning").text = _fit(warning)
    return etree.tostring(root, encoding="unicode", pretty_print=True)


def _set(element: etree._Element, name: str, value: str) -> None:
    if value:
        element.set(name, _fit(value))


def _fit(text: str) -> str:
    return _unfit().sub("\ufffd", text)


@cache  # a set of so many characters takes long to make
def _unfit() -> re.Pattern[str]:
    """What XML 1.0 cannot hold, whatever the escape."""
    return re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
