"""When to revisit pages: estimation of change rates, revisit policies, simulation. Pure."""

from typing import TYPE_CHECKING

from letopis.lazy import public_names
from letopis.schedule.change_rate import DateTrust, age_of_change, rate_from_history
from letopis.schedule.optimal import OptimalPolicy, make_policy
from letopis.schedule.policies import (
    AdaptivePolicy,
    RevisitDecision,
    RevisitPolicy,
    RevisitReason,
    UniformPolicy,
    VisitResult,
    VisitState,
)

if TYPE_CHECKING:
    from letopis.schedule.freshness import estimated_freshness, expected_freshness, optimal_rates
    from letopis.schedule.simulation import (
        POLICIES,
        ChangePattern,
        CoefficientRow,
        Coefficients,
        RevisitAdvice,
        SimulatedWorld,
        SimulationRow,
        VisitMeasures,
        coefficient_plot,
        make_world,
        measure_visits,
        recorded_world,
        revisit_advice,
        simulate,
        study_coefficients,
    )

_HOMES = {
    "POLICIES": "simulation",
    "ChangePattern": "simulation",
    "CoefficientRow": "simulation",
    "Coefficients": "simulation",
    "RevisitAdvice": "simulation",
    "SimulatedWorld": "simulation",
    "SimulationRow": "simulation",
    "VisitMeasures": "simulation",
    "coefficient_plot": "simulation",
    "estimated_freshness": "freshness",
    "expected_freshness": "freshness",
    "make_world": "simulation",
    "measure_visits": "simulation",
    "optimal_rates": "freshness",
    "recorded_world": "simulation",
    "revisit_advice": "simulation",
    "simulate": "simulation",
    "study_coefficients": "simulation",
}

__all__ = [
    "POLICIES",
    "AdaptivePolicy",
    "ChangePattern",
    "CoefficientRow",
    "Coefficients",
    "DateTrust",
    "OptimalPolicy",
    "RevisitAdvice",
    "RevisitDecision",
    "RevisitPolicy",
    "RevisitReason",
    "SimulatedWorld",
    "SimulationRow",
    "UniformPolicy",
    "VisitMeasures",
    "VisitResult",
    "VisitState",
    "age_of_change",
    "coefficient_plot",
    "estimated_freshness",
    "expected_freshness",
    "make_policy",
    "make_world",
    "measure_visits",
    "optimal_rates",
    "rate_from_history",
    "recorded_world",
    "revisit_advice",
    "simulate",
    "study_coefficients",
]

# What looks at all pages at once is imported at its first use: it needs numpy, and no visit needs it.
__getattr__ = public_names(__name__, _HOMES)
