"""Addresses as plain values: spelling, parts, sort keys, scopes, transformation rules. No I/O."""

from typing import TYPE_CHECKING

from letopis.lazy import public_names
from letopis.urls.normalization import (
    MAX_URL,
    host,
    hostname,
    join,
    joiner,
    normalize,
    parse_user_url,
    registered_domain,
    site,
    url_key,
)
from letopis.urls.surt import surt

if TYPE_CHECKING:
    from letopis.urls.rules import (
        RedirectRule,
        UrlRuleOutcome,
        UrlRules,
        UrlRuleVerdict,
        Variable,
        VarList,
        is_tracking,
        rules_from_tables,
        without_tracking,
    )
    from letopis.urls.rules_xml import rules_from_element, rules_from_xml, rules_to_xml
    from letopis.urls.scope import Scope, ScopeKind, Scopes

_HOMES = {
    "RedirectRule": "rules",
    "Scope": "scope",
    "ScopeKind": "scope",
    "Scopes": "scope",
    "UrlRuleOutcome": "rules",
    "UrlRuleVerdict": "rules",
    "UrlRules": "rules",
    "VarList": "rules",
    "Variable": "rules",
    "is_tracking": "rules",
    "rules_from_element": "rules_xml",
    "rules_from_tables": "rules",
    "rules_from_xml": "rules_xml",
    "rules_to_xml": "rules_xml",
    "without_tracking": "rules",
}

__all__ = [
    "MAX_URL",
    "RedirectRule",
    "Scope",
    "ScopeKind",
    "Scopes",
    "UrlRuleOutcome",
    "UrlRuleVerdict",
    "UrlRules",
    "VarList",
    "Variable",
    "host",
    "hostname",
    "is_tracking",
    "join",
    "joiner",
    "normalize",
    "parse_user_url",
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

# Rules and scopes are imported at their first use: checks start without them and their XML.
__getattr__ = public_names(__name__, _HOMES)
