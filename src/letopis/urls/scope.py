"""Which addresses a crawl may follow, relative to where it began."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from letopis.errors import UsageError
from letopis.lazy import lazy
from letopis.tuples import NamedTuple
from letopis.urls.normalization import host, normalize, registered_domain

if TYPE_CHECKING:
    from letopis import bounded
else:
    bounded = lazy("letopis.bounded")  # few scopes have patterns

_PATTERN_LIMIT = 1000
_SUBJECT_LIMIT = 2048


class ScopeKind(StrEnum):
    """How far from the seeds a crawl goes."""

    PAGE = "page"
    PREFIX = "prefix"
    HOST = "host"
    DOMAIN = "domain"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Scope:
    """A decision about addresses: inside the kind's bounds, included, not excluded.

    `include` and `exclude` are regular expressions searched in the first 2048 characters of the address. With no
    `include` everything counts as included; an address on which a pattern takes too long counts as excluded. Raises
    UsageError for a pattern that is no regular expression, BadUrl for a bad seed.
    """

    kind: ScopeKind = ScopeKind.HOST
    seeds: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    _marks: frozenset[str] = field(init=False, repr=False, compare=False)
    _prefixes: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _wanted: bounded.BoundedPattern | None = field(init=False, repr=False, compare=False)
    _unwanted: bounded.BoundedPattern | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", ScopeKind(self.kind))
        marks = frozenset(self._mark(normalize(seed)) for seed in self.seeds)
        object.__setattr__(self, "_marks", marks)
        object.__setattr__(self, "_prefixes", tuple(sorted(marks)) if self.kind is ScopeKind.PREFIX else ())
        object.__setattr__(self, "_wanted", _either(self.include))
        object.__setattr__(self, "_unwanted", _either(self.exclude))

    def allows(self, url: str) -> bool:
        """Whether a normalised address may be fetched and followed."""
        return self.reaches(url) and self.chooses(url)

    def chooses(self, url: str) -> bool:
        """Whether an address is included and not excluded, wherever it lies."""
        subject = url[:_SUBJECT_LIMIT]
        if self._unwanted is not None and self._unwanted.found_in(subject, in_doubt=True):
            return False
        return self._wanted is None or self._wanted.found_in(subject, in_doubt=False)

    def reaches(self, url: str) -> bool:
        """Whether an address lies inside the kind's bounds."""
        if self.kind is ScopeKind.ANY:
            return True
        if self.kind is ScopeKind.PREFIX:
            return _unschemed(url).startswith(self._prefixes)
        return self._mark(url) in self._marks

    def _mark(self, url: str) -> str:
        """What an address shares with its seed when it is inside the scope."""
        match self.kind:
            case ScopeKind.PAGE:
                return url
            case ScopeKind.PREFIX:
                path = _unschemed(url).partition("?")[0]
                return path[: path.rindex("/") + 1]
            case ScopeKind.HOST:
                return host(url)
            case ScopeKind.DOMAIN:
                return registered_domain(host(url))
            case ScopeKind.ANY:
                return ""


class Scopes(NamedTuple):
    """Several scopes as one: an address that any of them allows, and that `chosen` chooses."""

    scopes: tuple[Scope, ...]
    chosen: Scope

    def allows(self, url: str) -> bool:
        """Whether a normalised address may be fetched and followed."""
        return self.chosen.chooses(url) and any(scope.allows(url) for scope in self.scopes)

    def reaches(self, url: str) -> bool:
        """Whether an address lies inside the bounds of any."""
        return any(scope.reaches(url) for scope in self.scopes)

    def chooses(self, url: str) -> bool:
        """Whether an address is included and not excluded, wherever it lies."""
        return self.chosen.chooses(url) and any(scope.chooses(url) for scope in self.scopes)


def _unschemed(url: str) -> str:
    """Without the scheme: http and https are one place."""
    return url.partition("://")[2]


def _either(patterns: tuple[str, ...]) -> bounded.BoundedPattern | None:
    """What finds any of them."""
    for pattern in patterns:
        if len(pattern) > _PATTERN_LIMIT:
            raise UsageError(f"the pattern '{pattern[:40]}...' is longer than {_PATTERN_LIMIT} characters; shorten it")
    return bounded.BoundedPattern(*patterns) if patterns else None
