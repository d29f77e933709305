"""Addresses as plain values: spelling, parts, sort keys, scopes, transformation rules. No I/O."""

from letopis.urls.normal import MAX_URL, join, joiner, normalize, parse_user
from letopis.urls.parts import host, hostname, registered_domain, site, url_key
from letopis.urls.rules import Fit, Redirect, Rules, Variable, VarList, Verdict, rules_from_tables
from letopis.urls.rules_xml import rules_from_element, rules_from_xml
from letopis.urls.scope import Scope, ScopeKind
from letopis.urls.surt import surt
from letopis.urls.tracking import is_tracking, without_tracking

__all__ = [
    "MAX_URL",
    "Fit",
    "Redirect",
    "Rules",
    "Scope",
    "ScopeKind",
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
    "site",
    "surt",
    "url_key",
    "without_tracking",
]
