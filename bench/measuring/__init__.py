"""What all benchmarks measure with."""

from bench.measuring.commands import Spent, environment, measured
from bench.measuring.webs import simulated_web

__all__ = ["Spent", "environment", "measured", "simulated_web"]
