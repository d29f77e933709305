"""Frozen values whose fields are declared in a class body, without methods compiled for each class.

Every command starts, and making a dataclass of each set of settings or
parameters would take longer than a check.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any, Never


class FrozenFields:
    """Equal where class and values are, hashable, shown as it would be written; what extends it fills `vars(self)`."""

    def __setattr__(self, name: str, value: Any) -> Never:
        """Many read it at once."""
        raise FrozenInstanceError(f"cannot assign to {name}; make a changed copy")

    def __delattr__(self, name: str) -> Never:
        """As above."""
        raise FrozenInstanceError(f"cannot delete {name}")

    def __eq__(self, other: object) -> bool:
        """The same class with the same values."""
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        """Fits `__eq__`."""
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        """As it would be written."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"
