"""Which parameters matter: tracking marks and session ids that never do, and the rules of a site's addresses.

A redirect rule replaces one address by another and keeps the query string. A list of variables says which parameters a
script takes: those it does not name are dropped, an address that lacks a required one or gives it a value that is not
listed is ignored. Redirects act first, variables then. The `<urltransform>` step of a job writes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar
from urllib.parse import unquote_plus

from letopis.errors import UsageError
from letopis.lazy import etree
from letopis.tuples import NamedTuple
from letopis.urls.normalization import normalize, parse_user_url

# A session id is long and random; short values of the ambiguous names (`sid=12`) may choose the page.
_TRACKING = re.compile(
    r"(?:utm_\w+|fbclid|gclid|gclsrc|dclid|gbraid|wbraid|msclkid|yclid|ysclid|twclid|ttclid|igshid|igsh|li_fat_id"
    r"|mc_[ce]id|mkt_tok|_hs(?:enc|mi)|hsctatracking|vero_id|oly_(?:anon|enc)_id|rb_clickid|s_cid|zanpid|sznclid"
    r"|_openstat|_ga|_gl|pk_\w+|mtm_\w+|matomo_\w+|wickedid|epik|srsltid)(?:=.*)?",
    re.IGNORECASE | re.ASCII,
)
_SESSION = re.compile(
    r"(?:phpsessid|jsessionid|aspsessionid\w*|cfid|cftoken|oscsid|zenid|osclass|sessionid|session_id|sess_id)(?:=.*)?"
    r"|(?:sid|s|session|sess)=(?:[0-9a-f]{24,}|[0-9a-z]{26,})",
    re.IGNORECASE | re.ASCII,
)
_SESSION_IN_PATH = re.compile(r";jsessionid=[^/?#;]*|/\((?:[A-Z]\([0-9a-z]{24}\))+\)(?=/)", re.IGNORECASE)


def without_tracking(url: str) -> str:
    """A normalised address without session ids and tracking parameters; normal again."""
    head, mark, query = url.partition("?")
    if ";" in head or "(" in head:
        head = _SESSION_IN_PATH.sub("", head)
    if not mark:
        return head
    kept = "&".join(part for part in query.split("&") if not is_tracking(part))
    return f"{head}?{kept}" if kept else head


def is_tracking(parameter: str) -> bool:
    """Whether `name=value` is a session id or a tracking mark."""
    return bool(_TRACKING.fullmatch(parameter) or _SESSION.fullmatch(parameter))


_MAX_REDIRECTS = 16
_T = TypeVar("_T")


class UrlRuleOutcome(StrEnum):
    """How an address fits the rules."""

    KEPT = "kept"
    REDIRECTED = "redirected"
    BAD_VALUE = "bad-value"
    MISSING = "missing"


class UrlRuleVerdict(NamedTuple):
    """What the rules make of an address. `url` is the address to use, also where it is ignored."""

    outcome: UrlRuleOutcome
    url: str
    reason: str = ""

    @property
    def ignored(self) -> bool:
        """The page does not fit and is neither fetched nor indexed."""
        return self.outcome in (UrlRuleOutcome.BAD_VALUE, UrlRuleOutcome.MISSING)


class Variable(NamedTuple):
    """One parameter of a script. No `values`: any value will do."""

    name: str
    values: tuple[str, ...] = ()
    required: bool = True


class VarList(NamedTuple):
    """The parameters that the script at `base` takes."""

    base: str
    variables: tuple[Variable, ...] = ()


class RedirectRule(NamedTuple):
    """`base` is the same page as `target`."""

    base: str
    target: str


@dataclass(frozen=True, slots=True)
class UrlRules:
    """All rules of a query or a crawl.

    Bases and targets are addresses with or without a scheme; without one they
    hold for http and https alike. A later rule for one base replaces an earlier one.
    """

    redirects: tuple[RedirectRule, ...] = ()
    varlists: tuple[VarList, ...] = ()
    _targets: Mapping[str, str] = field(init=False, repr=False, compare=False)
    _lists: Mapping[str, Mapping[str, Variable]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        targets = {_base_key(rule.base): rule.target for rule in self.redirects}
        for target in targets.values():
            parse_user_url(target)
        lists = {_base_key(rule.base): {one.name: one for one in rule.variables} for rule in self.varlists}
        object.__setattr__(self, "_targets", targets)
        object.__setattr__(self, "_lists", lists)

    def __add__(self, other: UrlRules) -> UrlRules:
        return UrlRules(self.redirects + other.redirects, self.varlists + other.varlists)

    def apply(self, url: str) -> UrlRuleVerdict:
        """The verdict on an address. Raises BadUrl when it is none."""
        normal = normalize(url)
        found = self._redirected(normal)
        variables = self._for(self._lists, found)
        if variables is not None:
            head, _, query = found.partition("?")
            pairs = [_pair(part) for part in query.split("&") if part]
            fault = _fault(variables, pairs)
            if fault is not None:
                return UrlRuleVerdict(fault[0], found, fault[1])
            kept = "&".join(part for name, _, part in pairs if name in variables)
            found = f"{head}?{kept}" if kept else head
        return UrlRuleVerdict(UrlRuleOutcome.KEPT if found == normal else UrlRuleOutcome.REDIRECTED, found)

    def _redirected(self, url: str) -> str:
        for _ in range(_MAX_REDIRECTS):
            target = self._for(self._targets, url)
            if target is None:
                break
            following = _with_query(target, url)
            if following == url:
                break
            url = following
        return url

    @staticmethod
    def _for(table: Mapping[str, _T], url: str) -> _T | None:
        page = url.partition("?")[0]
        found = table.get(page)
        return table.get(page.partition("://")[2]) if found is None else found


def _base_key(base: str) -> str:
    """A normalised page address without query; without scheme where the rule names none."""
    if not base.strip():
        raise UsageError('a rule needs a base; write base="example.org/index.php"')
    page = parse_user_url(base).partition("?")[0]
    return page if "://" in base else page.partition("://")[2]


def _with_query(target: str, url: str) -> str:
    """The target under the scheme of `url` (unless it names its own), with its query added."""
    if "://" not in target:
        target = url.partition("://")[0] + "://" + target.lstrip("/")
    query = url.partition("?")[2]
    if query:
        target += ("&" if "?" in target else "?") + query
    return normalize(target)


def _pair(part: str) -> tuple[str, str, str]:
    name, _, value = part.partition("=")
    return unquote_plus(name), unquote_plus(value), part


def _fault(
    variables: Mapping[str, Variable], pairs: Sequence[tuple[str, str, str]]
) -> tuple[UrlRuleOutcome, str] | None:
    """The first rule that the parameters break: a wrong value is named before a missing one."""
    for name, value, _ in pairs:
        variable = variables.get(name)
        if variable and variable.values and value not in variable.values:
            return UrlRuleOutcome.BAD_VALUE, f"parameter {name} has the value '{value[:100]}'"
    given = {name for name, _, _ in pairs}
    for variable in variables.values():
        if variable.required and variable.name not in given:
            return UrlRuleOutcome.MISSING, f"parameter {variable.name} is missing"
    return None


def rules_from_xml(data: bytes) -> UrlRules:
    """Rules of an XML text; entities, external files and networks stay closed. Raises UsageError."""
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as fault:
        raise UsageError(f"the rules are not well-formed XML ({fault}); correct the file") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise UsageError("rules may not carry a document type; remove the <!DOCTYPE> part")
    return rules_from_element(root)


def rules_from_element(element: etree._Element) -> UrlRules:
    """Rules of all `<urltransform>` elements at or under `element`."""
    found = UrlRules()
    for step in element.iter("urltransform"):
        redirects = tuple(_redirect(one) for one in step.iterchildren("redirect"))
        found += UrlRules(redirects, tuple(_varlist(one) for one in step.iterchildren("varlist")))
    return found


def rules_to_xml(rules: UrlRules) -> str:
    """One `<urltransform>` element that means the same rules."""
    step = etree.Element("urltransform")
    for redirect in rules.redirects:
        etree.SubElement(step, "redirect", base=redirect.base).text = redirect.target
    for varlist in rules.varlists:
        inside = etree.SubElement(step, "varlist", base=varlist.base)
        for variable in varlist.variables:
            one = etree.SubElement(inside, "var", name=variable.name)
            one.text = None if variable.required else "optional"
            for value in variable.values:
                etree.SubElement(one, "value").text = value
    return etree.tostring(step, encoding="unicode")


def _redirect(element: etree._Element) -> RedirectRule:
    target = _text(element)
    if not target:
        raise UsageError('<redirect> names no target; write <redirect base="a/index.html">a/index.php</redirect>')
    return RedirectRule(element.get("base", ""), target)


def _varlist(element: etree._Element) -> VarList:
    return VarList(element.get("base", ""), tuple(_variable(one) for one in element.iterchildren("var")))


def _variable(element: etree._Element) -> Variable:
    """`<var/>` any value, `<var><value>..` one of these, `<var>optional` may be left out."""
    name = element.get("name", "")
    if not name:
        raise UsageError('<var> has no name; write <var name="page"/>')
    values = tuple(_text(value) for value in element.iterchildren("value"))
    words = "".join([element.text or "", *(child.tail or "" for child in element)]).strip()
    if words not in ("", "optional"):
        raise UsageError(f"<var name=\"{name}\"> says '{words}'; write nothing, values, or optional")
    return Variable(name, values, required=words != "optional")


def _text(element: etree._Element) -> str:
    return (element.text or "").strip()
