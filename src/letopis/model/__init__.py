"""Frozen values that cross the borders between units. Nothing here does I/O."""

from letopis.model.page import Block, BlockChange, BlockKind, Change, Link, LinkType, MutedBlock, Page
from letopis.model.record import (
    Check,
    Observation,
    Outcome,
    Put,
    PutResult,
    SetMember,
    Stats,
    Version,
    WholePage,
    json_value,
)
from letopis.model.times import (
    LONGEST_DURATION,
    Moment,
    as_moment,
    from_millis,
    http_date,
    last_moment,
    parse_duration,
    parse_time,
    rfc3339,
    stamp14,
    to_millis,
    written_duration,
)
from letopis.model.web import (
    NOT_ASKED,
    OVER_LIMIT,
    Failure,
    FailureKind,
    Headers,
    Hop,
    Limits,
    LoadedPage,
    Request,
    Response,
    SentRequest,
    header,
    shown_headers,
)

__all__ = [
    "LONGEST_DURATION", "NOT_ASKED", "OVER_LIMIT", "Block", "BlockChange", "BlockKind", "Change", "Check", "Failure",
    "FailureKind", "Headers", "Hop", "Limits", "Link", "LinkType", "LoadedPage", "Moment", "MutedBlock", "Observation",
    "Outcome", "Page", "Put", "PutResult", "Request", "Response", "SentRequest", "SetMember", "Stats", "Version",
    "WholePage", "as_moment", "from_millis", "header", "http_date", "json_value", "last_moment", "parse_duration",
    "parse_time", "rfc3339", "shown_headers", "stamp14", "to_millis", "written_duration",
]  # fmt: skip
