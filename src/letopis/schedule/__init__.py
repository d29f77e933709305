"""When to come back: estimation of change rates, revisit policies, simulation. Pure."""

from letopis.schedule.allot import best_rates, freshness
from letopis.schedule.belief import rate_from_history
from letopis.schedule.estimate import estimated_freshness
from letopis.schedule.measures import Measured, measure
from letopis.schedule.optimal import Optimal
from letopis.schedule.policies import Adaptive, Decision, Look, Policy, Uniform
from letopis.schedule.registry import make_policy
from letopis.schedule.simulate import POLICIES, SimulateRow, simulate
from letopis.schedule.state import VisitState
from letopis.schedule.trust import Trust, age_of_change
from letopis.schedule.why import Why
from letopis.schedule.worlds import World, make_world

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
