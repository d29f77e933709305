"""A simulated web with a known history, from a seed; for the demo, the simulator, tests and benchmarks."""

from letopis.demo.answers import Answer
from letopis.demo.server import DemoServer, SimulatedClock, running
from letopis.demo.standing_in import Asked, TimeLapse, WorldTransport
from letopis.demo.wire import LOG_FIELDS, Clock
from letopis.demo.world import START, Event, Fact, World

__all__ = [
    "LOG_FIELDS",
    "START",
    "Answer",
    "Asked",
    "Clock",
    "DemoServer",
    "Event",
    "Fact",
    "SimulatedClock",
    "TimeLapse",
    "World",
    "WorldTransport",
    "running",
]
