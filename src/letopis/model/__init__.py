"""Frozen values that cross the borders between units. Nothing here does I/O."""

from letopis.model.page import Block, BlockChange, BlockKind, Change, Link, LinkType, MutedBlock, Page
from letopis.model.record import Check, Observation, Outcome, Put, PutResult, Stats, Version, json_value
from letopis.model.times import (
    LONGEST_DURATION,
    from_millis,
    http_date,
    parse_duration,
    parse_time,
    rfc3339,
    stamp14,
    to_millis,
)
from letopis.model.web import Failure, FailureKind, Headers, Hop, Limits, Request, Response, header

__all__ = [
    "LONGEST_DURATION",
    "Block",
    "BlockChange",
    "BlockKind",
    "Change",
    "Check",
    "Failure",
    "FailureKind",
    "Headers",
    "Hop",
    "Limits",
    "Link",
    "LinkType",
    "MutedBlock",
    "Observation",
    "Outcome",
    "Page",
    "Put",
    "PutResult",
    "Request",
    "Response",
    "Stats",
    "Version",
    "from_millis",
    "header",
    "http_date",
    "json_value",
    "parse_duration",
    "parse_time",
    "rfc3339",
    "stamp14",
    "to_millis",
]
