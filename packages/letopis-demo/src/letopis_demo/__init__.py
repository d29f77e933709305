"""A simulated web with a known history, from a seed; for the demo, the simulator, tests and benchmarks."""

from letopis_demo.resources import DemoResponse
from letopis_demo.server import LOG_FIELDS, Clock, DemoServer, SimulatedClock, running
from letopis_demo.time_lapse import DemoRequest, TimeLapse, WorldTransport
from letopis_demo.world import START, World, WorldEvent, WorldFact

__all__ = [
    "LOG_FIELDS",
    "START",
    "Clock",
    "DemoRequest",
    "DemoResponse",
    "DemoServer",
    "SimulatedClock",
    "TimeLapse",
    "World",
    "WorldEvent",
    "WorldFact",
    "WorldTransport",
    "running",
]
