"""One look at one URL: fetch, read, compare, hand over for recording."""

from letopis.look.known import KnownVersion, known_version, known_versions
from letopis.look.visitor import LookOptions, Visitor, check_of_look, is_refused

__all__ = ["KnownVersion", "LookOptions", "Visitor", "check_of_look", "is_refused", "known_version", "known_versions"]
