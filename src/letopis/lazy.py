"""Modules that are loaded at their first use: every command starts, and few of them need everything.

    if TYPE_CHECKING:
        from letopis.archive import differences
    else:
        differences = lazy("letopis.archive.differences")

stands among the imports, says what is needed, and costs nothing until `differences.render_difference` is asked for.
`lazy_pattern` does the same for regular expressions that take long to compile and that few commands need.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import asyncio
    import socket

    import numpy as np
    import numpy.typing as npt
    import regex
    import tantivy
    from lxml import etree
    from tantivy import FieldType, Occur, Order, Query

__all__ = [
    "FieldType", "Occur", "Order", "Query", "asyncio", "etree", "lazy", "lazy_pattern", "np", "npt", "public_names",
    "regex", "socket", "tantivy",
]  # fmt: skip


class _LazyModule:
    """Stands for a module; whatever is asked of it is asked of the module."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        module = sys.modules.get(self._name)
        # While one thread loads a module, others find it half made; asked for again, it is waited for.
        if module is None or getattr(module.__spec__, "_initializing", False):
            module = import_module(self._name)
        return getattr(module, attribute)


class _LazyClass:
    """Stands for a class of such a module. What was asked of it once is remembered: searches ask many times."""

    def __init__(self, module: _LazyModule, name: str) -> None:
        self._module, self._name = module, name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(getattr(self._module, self._name), attribute)
        setattr(self, attribute, found)
        return found


def lazy(name: str) -> Any:
    """A module by its full name, loaded when something of it is used."""
    return _LazyModule(name)


class _LazyPattern:
    """Stands for a compiled pattern; what was asked of it once is remembered."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(re.compile(self._text), attribute)
        setattr(self, attribute, found)
        return found


def lazy_pattern(text: str) -> re.Pattern[str]:
    """A pattern that is compiled when something is asked of it."""
    return cast("re.Pattern[str]", _LazyPattern(text))


if not TYPE_CHECKING:  # what many modules name, and most processes never use: 26 MB of memory
    np, npt, etree = lazy("numpy"), lazy("numpy.typing"), lazy("lxml.etree")
    regex, tantivy = lazy("regex"), lazy("tantivy")
    asyncio, socket = lazy("asyncio"), lazy("socket")
    FieldType, Occur, Order, Query = (_LazyClass(tantivy, name) for name in ("FieldType", "Occur", "Order", "Query"))


def public_names(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that offers names of its modules and loads each of these at its first use.

    Such a table is for those who write programs with Letopis. The modules of Letopis name the module that they need.
    """
    homes = {name: module for module, many in names.items() for name in many}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load
