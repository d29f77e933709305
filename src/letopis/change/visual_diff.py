"""The new page as it looks, with additions and removals marked inside it.

Both pages are parsed and written again by the HTML parser, so that tags can be distinguished from text with
certainty. Active content (scripts, frames, handlers) is removed, and a content policy in the result forbids the rest.
Tags are matched only by name: on many pages attributes change at every visit, and readers see text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from letopis.bounded import run_bounded
from letopis.change.sequence import Budget, opcodes
from letopis.change.text_diff import DiffBounds
from letopis.errors import TooCostly
from letopis.tuples import NamedTuple

_ACTIVE = ["script", "noscript", "template", "iframe", "frame", "frameset", "object", "embed", "applet", "portal"]
_ACTIVE += ["base", "meta", "link", "xmp", "plaintext", "noembed", "noframes"]
_ACTIVE += ["animate", "animatetransform", "set", "foreignobject", "math"]
_FINE, _ROUGH = 1 << 20, 1 << 23
_SMALL = 1 << 15
"""Characters of two pages that no structure makes slow."""
_KEPT = "surrogatepass"
_REWRITTEN = 0.4
_TAG = r"<(?>[^\">]++|\"[^\"]*+\")*+>"
_OPAQUE = "|".join(
    rf"<{name}\b(?>[^\">]++|\"[^\"]*+\")*+>.*?</{name}\s*>" for name in ("style", "textarea", "svg", "select", "title")
)
_WORDS = re.compile(rf"{_OPAQUE}|<!--.*?-->|{_TAG}|[^<\s]++\s*+|\s++|<", re.DOTALL)
_RUNS = re.compile(rf"{_OPAQUE}|<!--.*?-->|{_TAG}|[^<]++|<", re.DOTALL)
_TAGS = re.compile(rf"<!--.*?-->|{_TAG}", re.DOTALL)
_PLAIN_NAME = r"[^\s\"'<>=/]++"
_SOUND_TAG = rf'</?+{_PLAIN_NAME}(?>\s++{_PLAIN_NAME}(?>="[^"]*+")?+)*+\s*+/?+>'
_SOUND = re.compile(rf"(?>[^<]++|<style\b[^>]*+>.*?</style\s*+>|{_SOUND_TAG}|<!--.*?-->)*+", re.DOTALL)
"""Markup in which every tag is one, however it is read: browsers take `<b"<svg>` for an element of that name."""
_IS_PLAIN = re.compile(_PLAIN_NAME)
_MARKUP_IN_SHEET = re.compile(r"<(?=[a-zA-Z/!?])")
_NAME = re.compile(r"</?[a-zA-Z][^\s/>]*")
_SOURCE = re.compile(r'\ssrc="([^"]*)"')
_ATTRIBUTE = re.compile(r'\s([^\s"=<>/]+)(?:="([^"]*)")?')
_ADDRESSES = frozenset(("href", "src", "xlink:href", "poster", "background", "data", "cite", "longdesc"))
_DROPPED = frozenset(("srcdoc", "formaction", "action", "ping", "autofocus", "http-equiv", "srcset", "imagesrcset"))
_SUSPECT = re.compile(rf"\s(?:on|{'|'.join(sorted(_DROPPED))})|[:&]", re.IGNORECASE)
_SCHEME = re.compile(r"[\x00-\x20]*([a-z][a-z0-9+.\-\x00-\x20]*):", re.IGNORECASE)
_SAFE_SCHEMES = frozenset(("http", "https", "mailto", "tel", "ftp"))
_NO_TEXT = re.compile(r"<(?:table|/?tbody|/?thead|/?tfoot|/?tr|/td|/th|colgroup|/caption)\b")
_MOST_DELETED = 200_000
_MOST_SHEETS = 100
_FIRST_MARK = re.compile(r'<(?:ins|del) class="letopis"')
FIRST_CHANGE = "letopis-first-change"
"""The id of the first mark, for links that lead there."""
_STYLE = """
ins.letopis{background:#c8f0c8;color:#062;text-decoration:underline}
del.letopis{background:#fbd0d0;color:#600;text-decoration:line-through}
del.letopis+ins.letopis{margin-left:.25em}
@media print{ins.letopis{background:none}del.letopis{background:none}}
"""


def visual_html(old: str, new: str, base_url: str = "", remote: bool = False, bounds: DiffBounds | None = None) -> str:
    """A whole HTML page: `new` with `<ins>` and `<del>` around the text that differs.

    Nothing in it can run or submit. Pictures and styles from elsewhere load only with `remote`; `base_url` is where
    relative addresses point then. Past its bounds the result marks larger runs, at worst everything.
    """
    bounds = bounds or DiffBounds()
    before, after = _Source(old), _Source(new, remote)
    body = _marked(_compared(before.body, after.body, bounds))
    head = _head(after, base_url, remote)
    return f"<!DOCTYPE html>\n<html{after.html_attributes}><head>{head}</head>{body}</body></html>\n"


def visual_html_in_time(old: str, new: str, base_url: str = "", remote: bool = False) -> str:
    """The same in bounded time and memory: pages that take more give a page that says so."""
    if len(old) + len(new) <= _SMALL:
        return visual_html(old, new, base_url, remote)
    order = {"old": len(old), "base_url": base_url, "remote": remote}
    try:
        return run_bounded(f"{__name__}:visual_for_another", order, (old + new).encode("utf-32-le", _KEPT)).decode()
    except TooCostly as error:
        return _undrawn(str(error))


def visual_for_another(order: Mapping[str, Any], body: bytes) -> bytes:
    """`visual_html` for the process that asked."""
    text = body.decode("utf-32-le", _KEPT)
    old, new = text[: order["old"]], text[order["old"] :]
    return visual_html(old, new, order["base_url"], order["remote"]).encode("utf-8", "replace")


def _undrawn(reason: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Not drawn</title></head>'
        f"<body><p>What changed cannot be drawn inside this page: {escape(reason)}. "
        "The view of its words shows the difference.</p></body></html>\n"
    )


class _Part(NamedTuple):
    """Tokens that were kept (`equal`, as the new page has them) or replaced."""

    equal: bool
    old: list[str]
    new: list[str]


def _compared(old: str, new: str, bounds: DiffBounds) -> Iterator[_Part]:
    """Tags and whole runs of text first; what differs is opened to words while it is not too much."""
    budget = bounds.start()
    room = _FINE
    for part in _parts(_RUNS.findall(old), _RUNS.findall(new), budget):
        size = sum(map(len, part.old)) + sum(map(len, part.new))
        if part.equal or not part.old or not part.new or size > room or bounds.late():
            yield part
        else:
            room -= size
            found = list(_parts(_WORDS.findall("".join(part.old)), _WORDS.findall("".join(part.new)), budget))
            yield from [part] if _is_rewritten(found) else found
    bounds.coarse = bounds.coarse or budget.coarse


def _is_rewritten(found: Sequence[_Part]) -> bool:
    """Whether so few words of a run of text stayed that it is another text; where tags differ, they are matched."""
    tokens = [token for part in found for token in (*part.old, *part.new)]
    if any(token[0] == "<" for token in tokens):
        return False
    same = sum(len(part.new) for part in found if part.equal)
    return sum(not part.equal for part in found) > 1 and 2 * same < _REWRITTEN * len(tokens)


def _parts(old: list[str], new: list[str], budget: Budget) -> Iterator[_Part]:
    for op in opcodes(_keys(old), _keys(new), budget):
        yield _Part(op.tag == "equal", old[op.a1 : op.a2], new[op.b1 : op.b2])


class _Source:
    """One page after parsing: the styles of its head, its body as markup. External style sheets only with `remote`."""

    def __init__(self, text: str, remote: bool = False) -> None:
        document = LexborHTMLParser(text[:_ROUGH])
        sheets = _linked_sheets(document) if remote else ""
        present = {node.tag for node in document.css(", ".join(_ACTIVE))}
        document.strip_tags([tag for tag in _ACTIVE if tag in present], recursive=True)
        head, body, root = document.head, document.body, document.root
        own = "".join(safe_tag(style.html or "") for style in head.css("style")) if head is not None else ""
        self.styles = sheets + own
        title = document.css_first("title")
        self.title = " ".join(title.text().split()) if title is not None else ""
        self.body = _sound_markup(body).removesuffix("</body>")
        language = (root.attributes.get("lang") or "") if root is not None else ""
        self.html_attributes = f' lang="{escape(language)}"' if language else ""


def _sound_markup(body: LexborNode | None) -> str:
    """The markup of an element without names that hold quotes or brackets, which would hide tags behind them."""
    found = (body.html if body is not None else None) or "<body></body>"
    if body is None or _SOUND.fullmatch(found):
        return found
    for node in body.css("*"):
        for name in [name for name in node.attributes if not _IS_PLAIN.fullmatch(name)]:
            del node.attrs[name]
        if not _IS_PLAIN.fullmatch(node.tag or ""):
            node.unwrap()
    found = body.html or ""
    return found if _SOUND.fullmatch(found) else f"<body>{escape(body.text(separator=' '))}</body>"


def _linked_sheets(document: LexborHTMLParser) -> str:
    """Links to the sheets that a page is shown with, made anew of their addresses alone."""
    found = []
    for link in document.css("link[rel][href]")[:_MOST_SHEETS]:
        words, address = (link.attributes.get("rel") or "").lower().split(), link.attributes.get("href") or ""
        scheme = _SCHEME.match(address)
        is_shown = "stylesheet" in words and "alternate" not in words
        if is_shown and (not scheme or scheme[1].lower() in ("http", "https")):
            media = link.attributes.get("media") or "all"
            found.append(f'<link rel="stylesheet" href="{escape(address)}" media="{escape(media)}">')
    return "".join(found)


def _keys(tokens: Sequence[str]) -> list[str]:
    keys = {token: _key(token) for token in set(tokens)}
    return [keys[token] for token in tokens]


def _key(token: str) -> str:
    """What makes two tokens the same: the name of a tag, the source of a picture, a word."""
    if token[0] != "<":
        return token.rstrip()
    if token.startswith("<img"):
        source = _SOURCE.search(token)
        return "<img " + source[1] if source else "<img"
    if token.endswith(("</svg>", "</select>", "</textarea>")):
        return token
    return token.partition(" ")[0].rstrip(">")


def _head(page: _Source, base_url: str, remote: bool) -> str:
    far = " http: https:" if remote else ""
    loads = f"img-src data:{far}; style-src 'unsafe-inline'{far}; font-src data:{far}"
    policy = f"default-src 'none'; {loads}; form-action 'none'"
    base = f'<base href="{escape(base_url)}" target="_blank">' if base_url else ""
    return (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">{base}'
        f"<title>{escape(page.title)}</title>{page.styles}<style>{_STYLE}</style>"
    )


class _SafeTags(dict[str, str]):
    """Harmless forms of tags, each created once."""

    def __missing__(self, token: str) -> str:
        self[token] = safe_tag(token)
        return self[token]


class _Writer:
    """Puts marks around runs of text, never around tags; every tag is written in its harmless form."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self._safe = _SafeTags()
        self._gone: list[str] = []
        self._last = ""
        self._room = _MOST_DELETED

    def keep(self, tokens: Sequence[str]) -> None:
        """Text and tags that stayed."""
        start = 0
        while self._gone and start < len(tokens):
            self._one(tokens[start])
            start += 1
        safe = self._safe
        self.out += [safe[token] if token[0] == "<" else token for token in tokens[start:]]
        self._last = next((token for token in reversed(tokens) if token[0] == "<"), self._last)

    def come(self, tokens: Sequence[str]) -> None:
        """Text that came, with the tags around it."""
        run: list[str] = []
        for token in tokens:
            if token[0] != "<":
                run.append(token)
                continue
            self._inserted(run)
            run = []
            if token.startswith("<img"):
                self.out.append(f'<ins class="letopis">{self._safe[token]}</ins>')
            else:
                self._one(token)
        self._inserted(run)

    def go(self, tokens: Sequence[str]) -> None:
        """Text that went; its tags went with it."""
        for text in tokens:
            if text[0] != "<" and self._room > 0:
                self._room -= len(text)
                self._gone.append(text)
        self._flush(for_text=False)

    def finish(self) -> str:
        """All that was written."""
        self._flush(for_text=True)
        return "".join(self.out)

    def _inserted(self, run: list[str]) -> None:
        text = "".join(run)
        if text.strip():
            self._flush(for_text=True)
            self.out.append(f'<ins class="letopis">{text}</ins>')
        elif text:
            self.out.append(text)

    def _one(self, token: str) -> None:
        if token[0] != "<":
            self._flush(for_text=True)
            self.out.append(token)
            return
        self.out.append(self._safe[token])
        self._last = token
        self._flush(for_text=False)

    def _flush(self, for_text: bool) -> None:
        """Write what is gone, but not where a table would throw it out."""
        if self._gone and (for_text or not _NO_TEXT.match(self._last)):
            text = "".join(self._gone)
            self._gone = []
            if text.strip():
                self.out.append(f'<del class="letopis">{text}</del>')


def _marked(parts: Iterable[_Part]) -> str:
    writer = _Writer()
    for part in parts:
        if part.equal:
            writer.keep(part.new)
        else:
            writer.go(part.old)
            writer.come(part.new)
    return writer.finish()


def with_first_change(page: str) -> str:
    """A page of `visual_html` whose first mark has the id FIRST_CHANGE, so that a link leads there."""
    return _FIRST_MARK.sub(rf'\g<0> id="{FIRST_CHANGE}"', page, count=1)


def safe_tag(token: str) -> str:
    """A tag without handlers and without addresses that run; comments and unknown markup vanish.

    An opaque token (a whole `<svg>`, `<select>`...) is made safe tag by tag.
    """
    if token.startswith("<style"):
        head, end = _TAGS.match(token), token.rfind("</")
        # Inside a drawing a sheet is read as markup.
        return _safe(head[0]) + _MARKUP_IN_SHEET.sub(r"\\3c ", token[head.end() : end]) + token[end:] if head else ""
    return _TAGS.sub(lambda match: _safe(match[0]), token) if _NAME.match(token) else ""


def _safe(tag: str) -> str:
    name = _NAME.match(tag)
    if name is None:
        return ""
    if not _SUSPECT.search(tag):
        return tag
    end = "/>" if tag.endswith("/>") else ">"
    kept = [_attribute(key, value) for key, value in _ATTRIBUTE.findall(tag[len(name[0]) : -len(end)])]
    return name[0] + "".join(kept) + end


def _attribute(key: str, value: str) -> str:
    lowered = key.lower()
    if lowered.startswith("on") or lowered in _DROPPED:
        return ""
    if lowered in _ADDRESSES and not _harmless(value):
        return ""
    return f' {key}="{value}"'


def _harmless(address: str) -> bool:
    scheme = _SCHEME.match(address.replace("&amp;", "&"))
    if scheme is None:
        return "&" not in address.split("/", 1)[0]
    name = re.sub(r"[\x00-\x20]", "", scheme[1]).lower()
    return name in _SAFE_SCHEMES or address.lower().lstrip().startswith("data:image/")
