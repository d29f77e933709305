"""How the parameters of an operation are declared, and how every door reads them.

A parameter class extends `Parameters`; `parameter` creates its fields. Doors pass raw values (texts of a command
line, a query string or an XML attribute; values of a JSON body), and `bind` turns them into parameters, so that an
invalid value gets the same error message everywhere.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from letopis.errors import DocumentTooLarge, UsageError
from letopis.lazy import lazy
from letopis.model import LONGEST_DURATION, last_moment, parse_duration, parse_time
from letopis.tuples import FrozenFields, NamedTuple

if TYPE_CHECKING:
    import difflib
else:
    difflib = lazy("difflib")

P = TypeVar("P")
LONGEST = 8192
"""Characters of a text that is not bounded otherwise."""

Door = Literal["cli", "http", "job"]
EVERYWHERE: frozenset[Door] = frozenset(("cli", "http", "job"))
CLI_ONLY: frozenset[Door] = frozenset(("cli",))
NOT_CLI: frozenset[Door] = frozenset(("http", "job"))
NOT_HTTP: frozenset[Door] = frozenset(("cli", "job"))


class Declared(NamedTuple):
    """The declaration of a field by `parameter`."""

    help: str
    alias: str = ""
    argument: bool = False
    flags: tuple[str, ...] = ()
    metavar: str = ""
    at_least: float | None = None
    at_most: float | None = None
    longest: int = LONGEST
    doors: frozenset[Door] = EVERYWHERE
    ends_day: bool = False
    secret: bool = False
    attribute: str = ""
    media_type: str = ""
    default: Any = ...
    joined: str = ""


def parameter(
    help: str,
    *,
    default: Any = ...,
    named: str = "",
    argument: bool = False,
    flags: tuple[str, ...] = (),
    metavar: str = "",
    at_least: float | None = None,
    at_most: float | None = None,
    longest: int = LONGEST,
    doors: frozenset[Door] = EVERYWHERE,
    ends_day: bool = False,
    secret: bool = False,
    attribute: str = "",
    media_type: str = "",
    joined: str = "",
) -> Any:
    """A field of a parameter class; required unless it has a default.

    `named` is its name in query strings, bodies and attributes where that is not the field's name. `argument` makes it
    a word of the command line instead of an option, `flags` spell the option. `at_least` and `at_most` bound a number,
    the seconds of a duration, or how many a list may hold; `longest` the characters of a text. A door that is not among
    `doors` never sets it. A time that `ends_day` means the end of a day, month or year that is given alone: what was
    there as of then, or up to it. A `secret` is no word of the command line: it is read from standard input, or asked
    for. `attribute` is its name in the job language where that is not its alias; a list is then one attribute, with
    blanks between its words. `media_type` is that of a body that is this parameter alone. A parameter that is a Path is
    such a body too, written to a file that lasts as long as the operation. A text of parts with a mark between them is
    `joined` by it: an option that is given again adds to it.
    """
    return Declared(
        help, named, argument, flags, metavar, at_least, at_most, longest,
        doors, ends_day, secret, attribute, media_type, default, joined,
    )  # fmt: skip


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(parameter,))
class Parameters(FrozenFields):
    """The parameters of one operation: a frozen value with a field for each `parameter`, passed by name.

    Written once instead of being generated for each operation, because compiling methods at the start of every
    command would take longer than a check.
    """

    def __init__(self, **values: Any) -> None:
        """The defaults but for what is given; TypeError for what is unknown or missing."""
        declared = _declared_fields(type(self))
        unknown = values.keys() - declared.keys()
        missing = [name for name, one in declared.items() if one.default is ... and name not in values]
        if unknown or missing:
            raise TypeError(f"{type(self).__name__}: unknown {sorted(unknown)}, missing {missing}")
        vars(self).update({name: values.get(name, one.default) for name, one in declared.items()})
        self.__post_init__()

    def __post_init__(self) -> None:
        """Refuses, with UsageError, values that do not fit together; a class that has such a rule overrides it."""


class NoParameters(Parameters):
    """Of a question that has none: about the whole archive, about everything of a kind."""


def _declared_fields(shape: type[Any]) -> dict[str, Declared]:
    """The fields of a parameter class and of those that it extends, in their order."""
    return {
        name: value
        for one in reversed(shape.__mro__)
        for name, value in vars(one).items()
        if isinstance(value, Declared)
    }


class Parameter(NamedTuple):
    """One parameter as doors see it: its names, its kind, its limits and its default."""

    name: str
    alias: str
    kind: str
    choices: tuple[str, ...]
    required: bool
    default: Any
    declared: Declared

    @property
    def attribute(self) -> str:
        """Its name in the job language."""
        return self.declared.attribute or self.alias

    @property
    def repeated(self) -> bool:
        """Whether it may be given several times."""
        return self.kind in ("texts", "objects")

    def schema(self) -> dict[str, Any]:
        """Its JSON schema, for OpenAPI and for bodies."""
        plain: dict[str, Any] = dict(_SCHEMAS[self.kind])
        limits = {"minimum": self.declared.at_least, "maximum": self.declared.at_most}
        plain |= {name: value for name, value in limits.items() if value is not None and self.kind in _NUMBERS}
        if self.kind == "text":
            plain["maxLength"] = self.declared.longest
        if self.declared.secret:
            plain |= {"format": "password", "writeOnly": True}
        if self.repeated and self.declared.at_most is not None:
            plain["maxItems"] = int(self.declared.at_most)
        if self.choices:
            plain["enum"] = list(self.choices)
        if not self.required and self.default is not None and isinstance(self.default, str | int | float | bool):
            plain["default"] = self.default
        return plain


_SCHEMAS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "time": {"type": "string", "maxLength": 64},
    "duration": {"type": "string", "maxLength": 64},
    "choice": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string", "maxLength": LONGEST}},
    "objects": {"type": "array", "items": {"type": "object"}},
    "bytes": {"type": "string", "format": "binary"},
    "file": {"type": "string", "format": "binary"},
}
_NUMBERS = ("integer", "number")
_KINDS: dict[Any, str] = {
    str: "text", int: "integer", float: "number", bool: "flag", datetime: "time", timedelta: "duration",
    bytes: "bytes", Path: "file",
}  # fmt: skip


_declared: dict[type, tuple[Parameter, ...]] = {}


def parameters_of(shape: type[Any]) -> tuple[Parameter, ...]:
    """The parameters that a class declares, in their order."""
    if shape not in _declared:
        hints = get_type_hints(shape)
        found = _declared_fields(shape)
        _declared[shape] = tuple(_parameter(name, hints[name], declared) for name, declared in found.items())
    return _declared[shape]


def _parameter(name: str, hint: Any, declared: Declared) -> Parameter:
    bare = _without_none(hint)
    choices = tuple(str(value) for value in get_args(bare)) if get_origin(bare) is Literal else ()
    listed = ("texts" if get_args(bare)[0] is str else "objects") if get_origin(bare) is tuple else ""
    kind = "choice" if choices else listed or _KINDS[bare]
    required = declared.default is ...
    default = None if required else declared.default
    return Parameter(name, declared.alias or name, kind, choices, required, default, declared)


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return next(part for part in get_args(hint) if part is not type(None))
    return hint


def bind(
    shape: type[P], given: Mapping[str, Any], now: datetime, *, strict: bool = False, door: Door | None = None
) -> P:
    """The parameters that were given, by their aliases; UsageError says which one does not fit, and why.

    Relative times count from `now`. A strict reading refuses names that nobody knows, or that are not for the `door`.
    """
    known = tuple(one for one in parameters_of(shape) if door is None or door in one.declared.doors)
    if strict:
        _refuse_unknown(known, given)
    values = {}
    for one in known:
        raw = given.get(one.alias)
        if raw is None or raw == ():
            if one.required:
                raise UsageError(f"{one.alias} is missing: {one.declared.help}")
            continue
        values[one.name] = _READERS[one.kind](one, raw, now)
    return shape(**values)


def _refuse_unknown(known: tuple[Parameter, ...], given: Mapping[str, Any]) -> None:
    names = [one.alias for one in known]
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(names) or 'none'}"
            raise UsageError(f"unknown parameter '{str(name)[:70]}'; {hint}")


def _text(one: Parameter, raw: Any, now: datetime) -> str:
    if not isinstance(raw, str):
        raise UsageError(f"{one.alias} must be a text")
    text: str = raw
    if not text and one.required:
        raise UsageError(f"{one.alias} is empty: {one.declared.help}")
    if len(text) > one.declared.longest:
        raise UsageError(f"{one.alias} has {len(text)} characters; at most {one.declared.longest} are taken")
    return text


def _number(one: Parameter, raw: Any, now: datetime) -> float | int:
    make: Callable[[Any], float | int] = int if one.kind == "integer" else float
    word = "a whole number" if one.kind == "integer" else "a number"
    try:
        value = make(raw) if isinstance(raw, str) or type(raw) in (int, float) else None
    except (ValueError, OverflowError):
        value = None
    if value is None or not -math.inf < value < math.inf or (isinstance(raw, float) and raw != value):
        raise UsageError(f"{one.alias}: '{str(raw)[:70]}' is not {word}")
    if one.declared.at_least is not None and value < one.declared.at_least:
        raise UsageError(f"{one.alias} must be at least {one.declared.at_least:.15g}, not {value}")
    if one.declared.at_most is not None and value > one.declared.at_most:
        raise UsageError(f"{one.alias} must be at most {one.declared.at_most:.15g}, not {value}")
    return value


def _flag(one: Parameter, raw: Any, now: datetime) -> bool:
    if isinstance(raw, bool):
        return raw
    if str(raw).strip().lower() in ("true", "1", "yes", "on"):
        return True
    if str(raw).strip().lower() in ("false", "0", "no", "off"):
        return False
    raise UsageError(f"{one.alias}: '{str(raw)[:70]}' is neither true nor false")


def _time(one: Parameter, raw: Any, now: datetime) -> datetime:
    if isinstance(raw, datetime):
        return raw
    text = _text(one, raw, now)
    found = parse_time(text, now)
    return last_moment(text, found) if one.declared.ends_day else found


def require_span(start: datetime | None, end: datetime | None) -> None:
    """UsageError for a span of time that ends before it begins: its answer would be empty without a reason."""
    if start is not None and end is not None and start > end:
        raise UsageError("the span of time ends before it begins; 'from' must not be later than 'to'")


def _duration(one: Parameter, raw: Any, now: datetime) -> timedelta:
    text = str(raw)
    seconds = parse_duration(text)
    most = LONGEST_DURATION if one.declared.at_most is None else one.declared.at_most
    if seconds > most:
        longest = "ten years" if most == LONGEST_DURATION else f"{most:g} s"
        raise UsageError(f"{one.alias}: '{text[:70]}' is too long; write at most {longest}, such as 1h or 7d")
    if one.declared.at_least is not None and seconds < one.declared.at_least:
        raise UsageError(f"{one.alias}: '{text[:70]}' is too short; write at least {one.declared.at_least:g} s")
    return timedelta(seconds=seconds)


def _choice(one: Parameter, raw: Any, now: datetime) -> str:
    if raw not in one.choices:
        raise UsageError(f"{one.alias}: '{str(raw)[:70]}' is not known; choose {', '.join(one.choices)}")
    return str(raw)


def _texts(one: Parameter, raw: Any, now: datetime) -> tuple[str, ...]:
    given = [raw] if isinstance(raw, str) else raw
    if not isinstance(given, list | tuple):
        raise UsageError(f"{one.alias} must be a list of texts")
    _refuse_many(one, given)
    return tuple(_text(one, text, now) for text in given)


def _objects(one: Parameter, raw: Any, now: datetime) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(raw, list | tuple) or not all(isinstance(part, dict) for part in raw):
        raise UsageError(f"{one.alias} must be a list of objects")
    _refuse_many(one, raw)
    return tuple(raw)


def _refuse_many(one: Parameter, given: Sequence[Any]) -> None:
    if one.required and not given:
        raise UsageError(f"{one.alias} is empty: {one.declared.help}")
    if one.declared.at_most is not None and len(given) > one.declared.at_most:
        raise UsageError(f"{one.alias} has {len(given)} entries; at most {one.declared.at_most:g} are taken")


def _bytes(one: Parameter, raw: Any, now: datetime) -> bytes:
    data = raw.encode() if isinstance(raw, str) else bytes(raw)
    if one.declared.at_most is not None and len(data) > one.declared.at_most:
        raise DocumentTooLarge(f"{one.alias} has {len(data)} bytes; at most {one.declared.at_most:.0f} are taken")
    return data


def _file(one: Parameter, raw: Any, now: datetime) -> Path:
    """A file that the door has made of a body; whoever asks cannot name one."""
    if not isinstance(raw, Path):
        raise UsageError(f"{one.alias} must be the bytes of a file")
    return raw


_READERS: dict[str, Callable[[Parameter, Any, datetime], Any]] = {
    "text": _text, "integer": _number, "number": _number, "flag": _flag,
    "time": _time, "duration": _duration, "choice": _choice, "texts": _texts,
    "objects": _objects, "bytes": _bytes, "file": _file,
}  # fmt: skip
