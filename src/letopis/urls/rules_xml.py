"""Transformation rules as the `<urltransform>` step of a job writes them."""

from __future__ import annotations

from letopis.errors import UsageError
from letopis.lazy import etree
from letopis.urls.rules import RedirectRule, UrlRules, Variable, VarList


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
