"""Addresses as plain values: spelling, parts, sort keys, scopes, transformation rules. No I/O."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from letopis.urls.normal import MAX_URL, join, joiner, normalize, parse_user
from letopis.urls.parts import host, hostname, registered_domain, site, url_key
from letopis.urls.surt import surt

if TYPE_CHECKING:
    from letopis.urls.rules import Fit, Redirect, Rules, Variable, VarList, Verdict, rules_from_tables
    from letopis.urls.rules_xml import rules_from_element, rules_from_xml, rules_to_xml
    from letopis.urls.scope import Scope, ScopeKind, Scopes
    from letopis.urls.tracking import is_tracking, without_tracking

_HOMES = {
    **dict.fromkeys(("Fit", "Redirect", "Rules", "VarList", "Variable", "Verdict", "rules_from_tables"), "rules"),
    **dict.fromkeys(("rules_from_element", "rules_from_xml", "rules_to_xml"), "rules_xml"),
    **dict.fromkeys(("Scope", "ScopeKind", "Scopes"), "scope"),
    **dict.fromkeys(("is_tracking", "without_tracking"), "tracking"),
}

__all__ = [
    "MAX_URL",
    "Fit",
    "Redirect",
    "Rules",
    "Scope",
    "ScopeKind",
    "Scopes",
    "VarList",
    "Variable",
    "Verdict",
    "host",
    "hostname",
    "is_tracking",
    "join",
    "joiner",
    "normalize",
    "parse_user",
    "registered_domain",
    "rules_from_element",
    "rules_from_tables",
    "rules_from_xml",
    "rules_to_xml",
    "site",
    "surt",
    "url_key",
    "without_tracking",
]


def __getattr__(name: str) -> Any:
    """Rules and scopes are imported at their first use: checks start without them and their XML."""
    if name not in _HOMES:
        raise AttributeError(f"module 'letopis.urls' has no attribute {name!r}")
    return getattr(import_module(f"letopis.urls.{_HOMES[name]}"), name)
