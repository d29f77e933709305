"""Results as JSON, for those who would rather not read XML."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO

from lxml import etree

from letopis.errors import UsageError
from letopis.jobs.language.documents import attributes


def result_json(result: bytes) -> str:
    """A result as one JSON object: `element`, the attributes, `text` where there is any, and `children`.

    Written piece by piece, so that a deep map needs no deep stack. UsageError where
    the parser's own bound of 2048 levels is met.
    """
    try:
        return "".join(_pieces(result))
    except etree.XMLSyntaxError as fault:
        raise UsageError(f"the result cannot be shown as JSON ({fault}); ask for a map with a depth") from None


def _pieces(result: bytes) -> Iterator[str]:
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
            own = json.dumps({"element": str(element.tag), **attributes(element)}, ensure_ascii=False)
            yield f'{before}{own[:-1]}, "children": ['
            before = ""
        else:
            text = (element.text or "").strip() if not len(element) else ""
            yield f'], "text": {json.dumps(text, ensure_ascii=False)}}}' if text else "]}"
            before = ", "
