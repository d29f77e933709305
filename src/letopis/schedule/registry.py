"""The policy that the settings name."""

from __future__ import annotations

from letopis.config.sections import ScheduleSettings
from letopis.schedule.optimal import Optimal
from letopis.schedule.policies import Adaptive, Policy, Uniform


def make_policy(settings: ScheduleSettings, memory: bytes = b"") -> Policy:
    """A policy ready for use; `memory` is what an `Optimal` remembered of the last run."""
    if settings.policy == "uniform":
        return Uniform(settings)
    if settings.policy == "adaptive":
        return Adaptive(settings)
    return Optimal(settings, memory)
