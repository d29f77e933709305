"""One look at one URL: fetch, read, compare, hand over for recording."""

from letopis.visit.answer import check_of
from letopis.visit.known import Known, known_of, known_of_many
from letopis.visit.look import Manner, Visitor, is_refused

__all__ = ["Known", "Manner", "Visitor", "check_of", "is_refused", "known_of", "known_of_many"]
