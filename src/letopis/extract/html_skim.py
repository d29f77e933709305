"""Where an HTML page leads to, and nothing else of it: what a crawl asks of a page it meets for the first time.

Elements are chosen inside the parser, so text and most elements of a page
cost nothing here.
"""

from __future__ import annotations

from itertools import islice

from selectolax.lexbor import LexborHTMLParser

from letopis.extract.draft import MAX_LINKS, Draft
from letopis.extract.html_links import Finder
from letopis.extract.html_names import AREA
from letopis.model import Link, LinkType

_LEADING = "a[href],area[href]"
_TELLING = "link,meta,iframe,frame,html"
_A, _AREA = LinkType.A, LinkType.AREA
_new = tuple.__new__


def skim(tree: LexborHTMLParser, draft: Draft) -> None:
    """Links that lead to other documents, with `rel` but without their texts, and what the head says."""
    finder = Finder(tree, draft, alts=False, base=tree.css_first("base[href]"))
    handlers = finder.handlers()
    for node in islice(tree.css(_TELLING), MAX_LINKS):
        handlers[node.tag_id](node)
    links = draft.links
    join = finder.join
    for node in islice(tree.css(_LEADING), MAX_LINKS):
        attributes = node.attributes
        href = attributes["href"]
        target = join(href) if href is not None else None
        if target is not None:
            kind = _AREA if node.tag_id == AREA else _A
            links.append(_new(Link, (target, kind, "", attributes.get("rel") or "", "")))
    finder.settle()
