"""Pages that are read from files: what a server or another place would have said is said in the page."""

from __future__ import annotations

import re
from html import unescape

from letopis.extract.rewriting import VALUE, Rewriter, quoted

_CHARSET = re.compile(r"<meta[^>]{0,400}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
_HEAD = re.compile(
    r"(?:\ufeff?\s*(?:<!--.*?-->\s*)*<!doctype[^>]*>)?(?:\s*<html\b[^>]*>)?(?:\s*<head\b[^>]*>)?",
    re.IGNORECASE | re.DOTALL,
)
_PLACE = re.compile(r"([\s\"'/])(href)" + VALUE, re.IGNORECASE)
_POLICY = re.compile(r"([\s\"'/])(http-equiv)" + VALUE, re.IGNORECASE)


class FileRewriter(Rewriter):
    """Rewrites one page or style sheet for a folder of files."""

    def page(self, text: str, charset: str) -> str:
        """A page, which says its charset itself: there is no server any more to say it."""
        changed = self.html(text)
        told = _CHARSET.search(changed[:1024])
        if told and told[1].lower() == charset.lower():
            return changed
        at = _HEAD.match(changed)
        place = at.end() if at else 0
        return f'{changed[:place]}<meta charset="{charset}">{changed[place:]}'

    def _attributes(self, tag: str, name: str) -> str:
        """Where the page now lies, its base and its policy do not mean what they meant."""
        kind = name.lower()
        if kind == "base":
            return _PLACE.sub(_kept, tag)
        if kind == "meta" and "content-security-policy" in tag.lower():
            return _POLICY.sub(_kept, tag)
        return super()._attributes(tag, name)


def _kept(match: re.Match[str]) -> str:
    lead, attribute, equals, *values = match.groups()
    value = unescape(next(found for found in values if found is not None))
    return f"{lead}data-kept-{attribute}{equals}{quoted(value)}"
