"""Named tuples whose classes cost next to nothing to make.

    from letopis.tuples import NamedTuple

is `typing.NamedTuple` to whoever reads or checks the code. The one of the standard library compiles every
annotation and a constructor for each class, 0.3 ms; a command has a hundred of them and is started for one page.
Here annotations stay the texts that they are under `from __future__ import annotations`, and constructors with
equally many fields are copies of one.

`FrozenFields` does the same for frozen values whose fields are declared in a class body: settings, parameters.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable
from dataclasses import FrozenInstanceError
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, Never, Self

_FIELD: Any = type(vars(namedtuple("_One", "one"))["one"])
"""What reads a field of a named tuple."""


class _Tuple(tuple[Any, ...]):
    """What all named tuples can do."""

    __slots__ = ()
    _fields = tuple[str, ...]()

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Self:
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, /, **changed: Any) -> Self:
        made = tuple.__new__(type(self), map(changed.pop, self._fields, self))
        if changed:
            raise ValueError(f"Got unexpected field names: {list(changed)!r}")
        return made

    __replace__ = _replace

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        fields = (f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({', '.join(fields)})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


@cache
def _constructor(fields: int) -> FunctionType:
    """A constructor of a tuple with so many fields."""
    names = "".join(f"_{number}, " for number in range(fields))
    made: FunctionType = eval(f"lambda _cls, {names}: _new(_cls, ({names}))", {"_new": tuple.__new__})  # noqa: S307
    return made


class _NamedTupleMeta(type):
    """Makes a plain class of what a class body declares."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        fields = tuple(body.get("__annotations__", ()))
        required = next((place for place, field in enumerate(fields) if field in body), len(fields))
        for field in fields[required:]:
            if field not in body:
                raise TypeError(f"{name}.{field} needs a default, as the fields before it have")
        defaults = {field: body[field] for field in fields[required:]}
        model = _constructor(len(fields))
        code = model.__code__.replace(co_name="__new__", co_varnames=("_cls", *fields))
        new = FunctionType(code, model.__globals__, "__new__", tuple(defaults.values()))
        new.__qualname__ = f"{body['__qualname__']}.__new__"
        readers = {field: _FIELD(place, None) for place, field in enumerate(fields)}
        kinds = {"__slots__": (), "_fields": fields, "__match_args__": fields, "_field_defaults": defaults}
        return type(name, (*bases[1:], _Tuple), {**body, **readers, **kinds, "__new__": new})


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    NamedTuple = type.__new__(_NamedTupleMeta, "NamedTuple", (), {})


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
