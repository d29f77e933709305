"""One look at one URL: may it be asked, fetch, read, compare, hand over for recording."""

from letopis.look.known import KnownVersion, check_of_look, known_version, known_versions
from letopis.look.politeness import is_refused
from letopis.look.visitor import LookOptions, NoTurn, Patience, VisitAnswer, Visitor

__all__ = [
    "KnownVersion",
    "LookOptions",
    "NoTurn",
    "Patience",
    "VisitAnswer",
    "Visitor",
    "check_of_look",
    "is_refused",
    "known_version",
    "known_versions",
]
