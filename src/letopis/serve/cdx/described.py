"""The parameters of the CDX servers as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Any


def _said(name: str, text: str, *, required: bool = False, **schema: Any) -> dict[str, Any]:
    shape = schema or {"type": "string"}
    return {"name": name, "in": "query", "required": required, "description": text, "schema": shape}


_SHARED = [
    _said("url", "Address; `prefix*` and `*.domain` are understood", required=True),
    _said("matchType", "What else is meant", type="string", enum=["exact", "prefix", "host", "domain"]),
    _said("from", "From this time on, 1 to 14 digits", type="string", pattern="^[0-9]{1,14}$"),
    _said("to", "Up to this time, 1 to 14 digits", type="string", pattern="^[0-9]{1,14}$"),
    _said("offset", "Rows to leave out first", type="integer", minimum=0),
    _said("page", "Part of a long answer, from 0", type="integer", minimum=0),
    _said("pageSize", "Blocks of 1000 URLs a page", type="integer", minimum=1, maximum=1000),
    _said("showNumPages", "Say only how many pages there are", type="boolean"),
    _said("closest", "Order by nearness to this time", type="string", pattern="^[0-9]{1,14}$"),
    _said("sort", "`closest` needs `closest=`", type="string", enum=["closest", "reverse"]),
]

WAYBACK_PARAMETERS = [
    *_SHARED,
    _said("fl", "Fields, with commas"),
    _said("filter", "`[!]field:regex`, matches the whole field", type="array", items={"type": "string"}),
    _said("collapse", "`field` or `field:N`", type="array", items={"type": "string"}),
    _said("limit", "Most rows; a negative number means the last ones", type="integer"),
    _said("output", "`json` for an array of arrays", type="string", enum=["json", "text"]),
    _said("showResumeKey", "Say where to go on", type="boolean"),
    _said("resumeKey", "Go on from here"),
]

PYWB_PARAMETERS = [
    *_SHARED,
    _said("fields", "Fields, with commas"),
    _said("filter", "`[!][=|~]field:text`", type="array", items={"type": "string"}),
    _said("limit", "Most rows", type="integer", minimum=0),
    _said("output", "`json` for one object a line", type="string", enum=["json", "text"]),
]
