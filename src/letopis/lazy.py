"""Modules that are loaded at their first use: every command starts, and few of them need everything.

    if TYPE_CHECKING:
        from letopis.archive import differences
    else:
        differences = lazy("letopis.archive.differences")

stands among the imports, says what is needed, and costs nothing until
`differences.render_difference` is asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


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


def lazy(name: str) -> Any:
    """A module by its full name, loaded when something of it is used."""
    return _LazyModule(name)
