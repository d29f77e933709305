"""Worlds of pages with known change times, for the simulator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from letopis.errors import UsageError
from letopis.model.times import parse_duration
from letopis.schedule.allot import Floats

Changes = Literal["poisson", "periodic", "exact"]

_SHORTEST, _LONGEST = 60.0, 7 * 86400.0
_JITTER = {"periodic": 0.25, "exact": 0.0}


@dataclass(frozen=True, slots=True)
class World:
    """Pages with their mean periods and all change times up to `seconds`."""

    periods: Floats
    changes: tuple[Floats, ...]
    seconds: float

    @property
    def rates(self) -> Floats:
        """True changes a second."""
        return 1.0 / self.periods


def make_world(pages: int, periods: str, changes: Changes, seconds: float, seed: int) -> World:
    """A world from a seed: `periods` as in `draw_periods`.

    `poisson` changes come at random, `periodic` ones after the period times
    uniform(0.75, 1.25), `exact` ones after the period itself.
    """
    random = np.random.default_rng(seed)
    drawn = draw_periods(periods, pages, random)
    return World(drawn, tuple(_change_times(period, changes, seconds, random) for period in drawn), seconds)


def draw_periods(text: str, pages: int, random: np.random.Generator) -> Floats:
    """Periods in seconds of 'uniform:2m-80m' or 'lognormal:60m:1.8' (cut to 1 min .. 7 days)."""
    kind, _, rest = text.partition(":")
    try:
        if kind == "uniform":
            low, _, high = rest.partition("-")
            return random.uniform(*_range(parse_duration(low), parse_duration(high)), pages)
        if kind == "lognormal":
            median, _, sigma = rest.partition(":")
            drawn = random.lognormal(math.log(parse_duration(median)), float(sigma), pages)
            return np.clip(drawn, _SHORTEST, _LONGEST)
    except ValueError as error:
        raise _bad_periods(text) from error
    except UsageError as error:
        raise _bad_periods(text) from error
    raise _bad_periods(text)


def _range(low: float, high: float) -> tuple[float, float]:
    if not 0.0 < low <= high:
        raise ValueError("an empty range")
    return low, high


def _bad_periods(text: str) -> UsageError:
    return UsageError(f"'{text}' names no periods; write uniform:2m-80m or lognormal:60m:1.8")


def _change_times(period: float, changes: Changes, seconds: float, random: np.random.Generator) -> Floats:
    expected = seconds / period
    count = int(expected * 1.4 + 8.0 * math.sqrt(expected) + 30.0)
    if changes == "poisson":
        times = np.cumsum(random.exponential(period, count))
    else:
        jitter = _JITTER[changes]
        gaps = period * random.uniform(1.0 - jitter, 1.0 + jitter, count)
        gaps[0] *= random.uniform()
        times = np.cumsum(gaps)
    return times[times < seconds]
