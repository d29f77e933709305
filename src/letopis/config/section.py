"""What all groups of settings have in common.

A section is a frozen dataclass in all that its users see: fields, `replace`,
equality, a repr. But the methods are written here once instead of being
generated for each section, because compiling them for a hundred settings
took longer than checking thirty pages, and every command starts.
"""

from __future__ import annotations

from dataclasses import Field, FrozenInstanceError, dataclass
from typing import Any, ClassVar, Never, dataclass_transform


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Section:
    """A group of settings, each with a default; made by name, never changed, compared by value."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        """Finds the fields of a section."""
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **values: Any) -> None:
        """The defaults but for what is given."""
        known = self.__dataclass_fields__
        unknown = values.keys() - known.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {', '.join(sorted(unknown))}")
        vars(self).update({name: row.default for name, row in known.items()} | values)

    def __setattr__(self, name: str, value: Any) -> Never:
        """Settings are read by many at once."""
        raise FrozenInstanceError(f"cannot assign to {name}; make changed settings with dataclasses.replace")

    def __delattr__(self, name: str) -> Never:
        """As above."""
        raise FrozenInstanceError(f"cannot delete {name}")

    def __eq__(self, other: object) -> bool:
        """The same section with the same values."""
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        """Fits `__eq__`."""
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        """As it would be written."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"
