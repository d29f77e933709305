"""One look at one URL: fetch, read, compare, hand over for recording."""

from letopis.visit.known import Known, known_of
from letopis.visit.look import Manner, Visitor
from letopis.visit.memory import Memory

__all__ = ["Known", "Manner", "Memory", "Visitor", "known_of"]
