"""All operations by name. A new family is a module of this package and one line here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from letopis.operations.operation import Operation

FAMILIES = (
    "accounts",
    "alerts",
    "captures",
    "checks",
    "crawls",
    "duplicates",
    "exchange",
    "imports",
    "jobs",
    "links",
    "moved_pages",
    "muting",
    "pages",
    "projects",
    "replay_quality",
    "replication",
    "runs",
    "saved_looks",
    "saved_searches",
    "settings",
    "site_listings",
    "totals",
    "two_factor",
    "upkeep",
    "watch_options",
    "watches",
    "word_forms",
    "words",
)
"""Modules of this package that hold operations."""


def operations_in(family: str) -> dict[str, Operation[Any, Any]]:
    """The operations of one module by name, in their order."""
    module = import_module(f"letopis.operations.{family}")
    found = [value for value in vars(module).values() if isinstance(value, Operation)]
    return {one.name: one for one in found}


@cache
def all_operations() -> dict[str, Operation[Any, Any]]:
    """Every operation by name; loads all families."""
    return {name: one for family in FAMILIES for name, one in operations_in(family).items()}
