"""What is planted on a page and when: a function of the world's seed and the page's number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, log
from random import Random
from typing import Literal

from letopis.tuples import NamedTuple
from letopis_demo.sites import BRANCH, NEWS, child_pages, kind_of
from letopis_demo.streams import NEVER, Fixed, Periodic, Poisson, Stream, draw_bits, pick, random_source

HOUR = 3_600_000
DAY = 24 * HOUR

Role = Literal["plain", "late", "gone", "moved", "renamed", "aba", "twin"]
Noise = Literal["", "clock", "counter", "ad"]
Dating = Literal["honest", "none", "now", "frozen"]

_ROLES: tuple[tuple[float, Role], ...] = (
    (0.05, "late"),
    (0.08, "gone"),
    (0.11, "moved"),
    (0.14, "renamed"),
    (0.17, "aba"),
    (0.20, "twin"),
)
TICK: dict[str, int] = {"clock": 1000, "counter": 60_000, "ad": 600_000}
"""How long each kind of noise stands still, in milliseconds."""


@dataclass(frozen=True, slots=True)
class WorldShape:
    """The numbers that fix a world; times in milliseconds since 1970.

    `span` is the stretch after `start` in which pages appear, vanish, move and are renamed. `pace` divides every period
    of change: 2 is a world twice as fast. `article_every` is the time between two new articles of a news site, `noisy`
    the share of pages with noise, `bulk` multiplies the text of a page.
    """

    seed: int
    hosts: int
    pages: int
    start: int
    span: int
    pace: float
    article_every: int
    crawl_delay: float
    noisy: float
    bulk: float


@dataclass(frozen=True, slots=True)
class PagePlan:
    """All that is fixed about one page. `host` is never a mirror; `content` is the page whose text it shows."""

    host: int
    page: int
    content: int
    role: Role
    born: int
    dies: int = NEVER
    moves: int = NEVER
    renamed: int = NEVER
    slots: tuple[Stream, ...] = ()
    flip: Periodic | None = None
    front: Periodic | None = None
    arrivals: tuple[tuple[int, int], ...] = ()
    noise: Noise = ""
    dating: Dating = "honest"
    etag: bool = True
    broken: bool = False
    chain: bool = False

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Everything that changes the page in a way that a reader would call a change."""
        once = [moment for _, moment in self.arrivals if moment > self.born]
        if self.renamed != NEVER:
            once.append(self.renamed)
        more: list[Stream] = [stream for stream in (self.flip, self.front) if stream is not None]
        return (*self.slots, *more, Fixed(self.born, tuple(once)))


class PageState(NamedTuple):
    """How a page stands at one moment; two moments with equal states have equal bytes."""

    slots: tuple[int, ...]
    flipped: bool
    renamed: bool
    listed: tuple[int, ...]
    newest: int
    tick: int


def is_leaf(shape: WorldShape, page: int) -> bool:
    """No page lies below it and it is no section."""
    return page > BRANCH and page * BRANCH + 1 >= shape.pages


def articles_from(shape: WorldShape) -> int:
    """The first page of a news site that is published after the start."""
    first_leaf = max(BRANCH + 1, -(-(shape.pages - 1) // BRANCH))
    return (first_leaf + shape.pages + 1) // 2


def article_times(shape: WorldShape, host: int) -> Periodic:
    """When the articles of a news site appear."""
    count = max(0, shape.pages - articles_from(shape))
    return Periodic(shape.start, shape.article_every, draw_bits(shape.seed, host, "articles"), limit=count)


def role_of(shape: WorldShape, host: int, page: int) -> Role:
    """What is planted on a page; sections and the home page are always plain."""
    if not is_leaf(shape, page) or (kind_of(host) is NEWS and page >= articles_from(shape)):
        return "plain"
    share = draw_bits(shape.seed, host, page, "role") / 2.0**64
    role: Role = next((role for bound, role in _ROLES if share < bound), "plain")
    if role == "twin" and not (is_leaf(shape, page - 1) and role_of(shape, host, page - 1) == "plain"):
        return "plain"
    return role


def _moment(shape: WorldShape, host: int, page: int) -> int:
    """When the event of a role happens."""
    return shape.start + 1 + int(shape.span * (draw_bits(shape.seed, host, page, "moment") / 2.0**64))


def birth_of(shape: WorldShape, host: int, page: int) -> int:
    """When a page begins to exist."""
    if kind_of(host) is NEWS and is_leaf(shape, page) and page >= articles_from(shape):
        return article_times(shape, host).nth(page - articles_from(shape))
    return _moment(shape, host, page) if role_of(shape, host, page) == "late" else shape.start


def _slots(shape: WorldShape, host: int, page: int, born: int, chance: Random) -> tuple[Stream, ...]:
    """The processes that rewrite paragraphs. Several Poisson processes together are one of the summed rate."""
    shares = chance.random()
    period = int(exp(log(HOUR) + chance.random() * log(60 * DAY / HOUR)) / shape.pace)
    key = draw_bits(shape.seed, host, page, "changes")
    if shares < 0.4:
        return ()
    if shares < 0.8:
        count = 1 + int(chance.random() * 3)
        return tuple(Poisson(born, max(1, period * count), key + slot) for slot in range(count))
    return (Periodic(born, max(5, period), key),)


@lru_cache(maxsize=8192)
def plan_of(shape: WorldShape, host: int, page: int) -> PagePlan:
    """The plan of a page of a host that is no mirror."""
    role, born = role_of(shape, host, page), birth_of(shape, host, page)
    content = page - 1 if role == "twin" else page
    chance = random_source(shape.seed, host, page, "plan")
    flip = Periodic(
        born, max(5, int((2 + 40 * chance.random()) * HOUR / shape.pace)), draw_bits(shape.seed, host, page)
    )
    below = child_pages(page, shape.pages)
    return PagePlan(
        host=host,
        page=page,
        content=content,
        role=role,
        born=born,
        dies=_moment(shape, host, page) if role == "gone" else NEVER,
        moves=_moment(shape, host, page) if role == "moved" else NEVER,
        renamed=_moment(shape, host, page) if role == "renamed" else NEVER,
        slots=_slots(shape, host, content, born, random_source(shape.seed, host, content, "slots"))
        if role != "aba"
        else (),
        flip=flip if role == "aba" else None,
        front=article_times(shape, host) if page == 0 and kind_of(host) is NEWS else None,
        arrivals=tuple((child, birth_of(shape, host, child)) for child in below),
        noise=pick(chance, ("clock", "counter", "ad")) if chance.random() < shape.noisy else "",
        dating=pick(chance, ("honest", "honest", "honest", "none", "now", "frozen")),
        etag=chance.random() < 0.7,
        broken=is_leaf(shape, page) and chance.random() < 0.04,
        chain=chance.random() < 0.03,
    )


def state_of(plan: PagePlan, at: int) -> PageState:
    """The state of a page that exists at that time."""
    return PageState(
        slots=tuple(stream.last(at) for stream in plan.slots),
        flipped=plan.flip is not None and plan.flip.count(at) % 2 == 1,
        renamed=plan.renamed <= at,
        listed=tuple(child for child, born in plan.arrivals if born <= at),
        newest=plan.front.count(at) if plan.front else 0,
        tick=at // TICK[plan.noise] if plan.noise else 0,
    )


def last_modified(plan: PagePlan, at: int) -> int:
    """The time of the last change that a reader would call one."""
    return max(stream.last(at) for stream in plan.streams)


def steady_until(plan: PagePlan, at: int) -> int:
    """The first moment after `at` at which the bytes or the status of the page's address may differ."""
    edges = [edge for edge in (plan.born, plan.dies, plan.moves) if edge > at]
    if plan.noise:
        edges.append((at // TICK[plan.noise] + 1) * TICK[plan.noise])
    return min([*edges, *(stream.next(at) for stream in plan.streams)])
