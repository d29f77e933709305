"""Named tuples that cost little to make behave as those of the standard library."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
import typing
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

from letopis.tuples import NamedTuple

T = TypeVar("T")


class Ours(NamedTuple):
    """A place."""

    name: str
    height: float
    tags: tuple[str, ...] = ()
    above: Ours | None = None

    @property
    def known(self) -> bool:
        return bool(self.name)


class Theirs(typing.NamedTuple):
    """A place."""

    name: str
    height: float
    tags: tuple[str, ...] = ()
    above: Theirs | None = None

    @property
    def known(self) -> bool:
        return bool(self.name)


class Boxed(NamedTuple, Generic[T]):
    """Anything."""

    inside: T
    label: str = ""


class Nothing(NamedTuple):
    """No field at all."""


KINDS = pytest.mark.parametrize("kind", [Ours, Theirs])


@KINDS
def test_it_is_a_tuple_with_names_and_defaults(kind: type[Ours]) -> None:
    one = kind("Snezka", 1603.3)
    assert tuple(one) == ("Snezka", 1603.3, (), None)
    assert one == kind(height=1603.3, name="Snezka")
    assert (one.name, one[1], one.tags, one.known) == ("Snezka", 1603.3, (), True)
    assert hash(one) == hash(tuple(one))
    assert kind._fields == kind.__match_args__ == ("name", "height", "tags", "above")
    assert kind._field_defaults == {"tags": (), "above": None}
    assert repr(one) == f"{kind.__name__}(name='Snezka', height=1603.3, tags=(), above=None)"
    assert one._asdict() == {"name": "Snezka", "height": 1603.3, "tags": (), "above": None}
    assert (kind.__name__, kind.__module__, kind.__doc__, type(kind)) == (kind.__name__, __name__, "A place.", type)


@KINDS
def test_it_is_replaced_copied_and_pickled(kind: type[Ours]) -> None:
    one = kind("Snezka", 1603.3, above=kind("sky", 0))
    assert one._replace(height=1) == ("Snezka", 1, (), ("sky", 0, (), None))
    assert kind._make(["a", 1, (), None]) == kind("a", 1)
    for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert (type(again), again) == (kind, one)


@KINDS
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda kind: kind("alone"), TypeError),
        (lambda kind: kind("a", 1, (), None, "more"), TypeError),
        (lambda kind: kind("a", 1, weight=2), TypeError),
        (lambda kind: kind._make(["a"]), TypeError),
        (lambda kind: kind("a", 1)._replace(weight=2), (ValueError, TypeError)),
        (lambda kind: setattr(kind("a", 1), "name", "b"), AttributeError),
        (lambda kind: setattr(kind("a", 1), "weight", 1), AttributeError),
    ],
)
def test_it_refuses_what_does_not_fit(kind: type[Ours], wrong: Callable[[Any], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        wrong(kind)


@KINDS
def test_its_constructor_and_its_types_can_be_asked_for(kind: type[Ours]) -> None:
    assert list(inspect.signature(kind).parameters) == ["name", "height", "tags", "above"]
    assert typing.get_type_hints(kind) == {"name": str, "height": float, "tags": tuple[str, ...], "above": kind | None}
    with pytest.raises(TypeError, match=r"__new__\(\) missing 1 required positional argument: 'height'"):
        kind("alone")  # type: ignore[call-arg]


def test_it_may_be_generic_extended_and_empty() -> None:
    assert Boxed[int](3).inside == 3
    assert typing.get_args(Boxed[int]) == (int,)
    assert Nothing() == ()

    class Higher(Ours):
        """With a method of its own."""

        __slots__ = ()

        def twice(self) -> float:
            return 2 * self.height

    assert Higher("a", 2)._replace(height=4).twice() == 8


def test_a_field_without_a_default_does_not_follow_one_that_has_one() -> None:
    text = (
        "from __future__ import annotations\nfrom letopis.tuples import NamedTuple\n"
        "class Wrong(NamedTuple):\n    first: int = 1\n    second: int\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Wrong.second needs a default" in done.stderr
