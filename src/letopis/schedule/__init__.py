"""When to come back: estimation of change rates, revisit policies, simulation. Pure."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from letopis.schedule.belief import rate_from_history
from letopis.schedule.optimal import Optimal
from letopis.schedule.policies import Adaptive, Decision, Look, Policy, Uniform
from letopis.schedule.registry import make_policy
from letopis.schedule.state import VisitState
from letopis.schedule.trust import Trust, age_of_change
from letopis.schedule.why import Why

if TYPE_CHECKING:
    from letopis.schedule.allot import best_rates, freshness
    from letopis.schedule.estimate import estimated_freshness
    from letopis.schedule.measures import Measured, measure
    from letopis.schedule.simulation import POLICIES, SimulateRow, simulate
    from letopis.schedule.worlds import World, make_world

# No module here is called like a name of this table: once loaded, it would stand in the place of that name.
_HOMES = {
    **dict.fromkeys(("best_rates", "freshness"), "allot"),
    "estimated_freshness": "estimate",
    **dict.fromkeys(("Measured", "measure"), "measures"),
    **dict.fromkeys(("POLICIES", "SimulateRow", "simulate"), "simulation"),
    **dict.fromkeys(("World", "make_world"), "worlds"),
}

__all__ = [
    "POLICIES",
    "Adaptive",
    "Decision",
    "Look",
    "Measured",
    "Optimal",
    "Policy",
    "SimulateRow",
    "Trust",
    "Uniform",
    "VisitState",
    "Why",
    "World",
    "age_of_change",
    "best_rates",
    "estimated_freshness",
    "freshness",
    "make_policy",
    "make_world",
    "measure",
    "rate_from_history",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """What looks at all pages at once is imported at its first use: it needs numpy, and no visit needs it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'letopis.schedule' has no attribute {name!r}")
    return getattr(import_module(f"letopis.schedule.{_HOMES[name]}"), name)
