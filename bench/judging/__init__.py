"""Pairs of versions that a reader judged, and what the detector says to them after the same visits."""

from bench.judging.pairs import Pair, Told, pairs_of
from bench.judging.replay import Answer, answers

__all__ = ["Answer", "Pair", "Told", "answers", "pairs_of"]
