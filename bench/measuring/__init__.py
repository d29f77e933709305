"""What all benchmarks measure with."""

from bench.measuring.commands import Spent, environment, measured

__all__ = ["Spent", "environment", "measured"]
