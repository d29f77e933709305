"""What a word is, the text of a page as the index keeps it, and the snippet around a hit.

The one place that cuts text into words, for the index, for queries and for the slow scans of tests.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from html import escape
from itertools import islice

from letopis.model import Block, BlockKind, Page
from letopis.tuples import NamedTuple

_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_SYLLABLES = (
    "\u0e01-\u0e30\u0e40-\u0e46\u0e81-\u0eb0\u0ebd-\u0ec6\u0edc-\u0edf\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d"
    "\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e\u1780-\u17b3\u17d7\u17dc"
)
"""Letters of Thai, Lao, Burmese and Khmer."""
_SIGNS = (
    "\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d"
    "\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd"
)
"""Their vowel signs and tones, some of which `re` takes for letters."""
_SOLID = f"{_CJK}{_SYLLABLES}"
"""Scripts written without blanks: each character, with the signs around it, is a word, and a word of a question becomes
a phrase.
"""
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711-\u07f3\u07fd\u0816-\u082d\u0859-\u085b\u0898-\u08e1\u08e3-\u0963"
    "\u0981-\u09e3\u09fe-\u0a75\u0a81-\u0ae3\u0afa-\u0b63\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0c83\u0cbc-\u0d4d"
    "\u0d57-\u0d63\u0d81-\u0df3\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0f84"
    "\u0f86-\u0fbc\u0fc6\u135d-\u135f\u1712-\u1734\u1752-\u1773\u1885-\u193b"
    "\u1a17-\u1a1b\u1a55-\u1a7f\u1ab0-\u1abd\u1abf-\u1b44\u1b6b-\u1b73\u1b80-\u1bf3\u1c24-\u1c37\u1cd0-\u1cd2"
    "\u1cd4-\u1dff\u2cef-\u2cf1\u2d7f-\u2dff\ua66f\ua674-\ua67d\ua69e-\ua6f1\ua802-\ua827\ua82c\ua880-\ua8c5"
    "\ua8e0-\ua8f1\ua8ff-\ua92d\ua947-\ua953\ua980-\ua9c0\ua9e5-\uaa4d\uaa7b-\uaac1\uaaeb-\uaaef\uaaf5\uaaf6"
    "\uabe3-\uabea\uabec\uabed\ufb1e\ufe20-\ufe2f"
)
"""Vowel signs, points and accents that stand behind a letter and belong to it, which `re` takes for no part of a word.

What lies between two of them in a range are letters, none of them `_SOLID`. No punctuation, no selectors of glyphs, no
signs of formulas.
"""
_PLAIN_MARKS = "\u0300-\u036f\u0483-\u0487"
_PLAIN_SCRIPTS = re.compile("[\0-\u052f\u1e00-\u1fff]*")
"""Latin, Greek and Cyrillic, which take no other marks than these."""
_STACKED = "[\u1039\u17d2]"
"""What puts the next letter below the one before."""
_LETTER = f"[^\\W{_SOLID}{_SIGNS}]"
_SYLLABLE = f"[{_SOLID}](?:[{_SIGNS}]++|(?<={_STACKED})[{_SYLLABLES}])*+"
WORD = re.compile(f"{_LETTER}++(?:[{_MARKS}]++{_LETTER}*+)*+|{_SYLLABLE}")
MAX_WORD_LENGTH = 80
"""Characters of a word that count; longer ones are no language."""


_INVISIBLE = "\u00ad\u034f\u061c\u0640\u200c-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
"""What is no letter inside of words: soft hyphens, joiners, signs of direction, the line that stretches Arabic ones."""
_SHAPES = (
    "\ufb00-\ufb06\ufb20-\ufb4f\ufb50-\ufbb1\ufbd3-\ufc5d\ufc64-\ufd3d\ufd50-\ufdf9\ufe80-\ufefc\uff10-\uff19\uff21-\uff3a"
    "\uff41-\uff5a\uff66-\uffdc"
)
"""Letters that only look otherwise: ligatures, Arabic ones by their place in a word, full and half width."""
_UNSETTLED = re.compile(f"[{_INVISIBLE}{_SHAPES}]+")


def nfc(text: str) -> str:
    """Text with its accents in one piece and nothing inside of words that is no part of them, so that equal words have
    equal characters.
    """
    return text if text.isascii() else unicodedata.normalize("NFC", _UNSETTLED.sub(_settled, text))


def _settled(found: re.Match[str]) -> str:
    return re.sub(f"[{_INVISIBLE}]", "", unicodedata.normalize("NFKC", found[0]))


def lowered(text: str) -> str:
    """Text in small letters, each at the place of its capital."""
    # The dotted capital I alone has a small form of two characters.
    return (text if "İ" not in text else text.replace("İ", "i")).lower()


def split_words(text: str) -> list[str]:
    """The words of a settled text in lower case, in order."""
    return [word[:MAX_WORD_LENGTH] for word in WORD.findall(lowered(text))]


def is_solid(word: str) -> bool:
    """Whether a word belongs to a script without blanks."""
    return re.match(f"[{_SOLID}]", word) is not None


END_OF_SOLID = f"(?![{_SIGNS}])"
"""What stands behind a word of such a script: none of its signs."""


def marks_of(pattern: str) -> str:
    """What a class must have besides letters and digits to hold all that goes on the words of a pattern.

    All marks cost much to compile, and words of most languages need few. This is for what is shown; what decides about
    hits takes all of them.
    """
    return _PLAIN_MARKS if _PLAIN_SCRIPTS.fullmatch(pattern) else _MARKS + _SIGNS


def unmarked(word: str) -> str:
    """A word without its marks, of which `isalpha` and `isalnum` say that they belong to no word."""
    return word if word.isalnum() else "".join([sign for sign in word if unicodedata.category(sign)[0] != "M"])


KIND_LETTERS = {
    BlockKind.TITLE: "t",
    BlockKind.KEYWORDS: "k",
    BlockKind.DESCRIPTION: "d",
    BlockKind.H1: "1",
    BlockKind.H2: "2",
    BlockKind.H3: "3",
    BlockKind.H4: "4",
    BlockKind.H5: "5",
    BlockKind.H6: "6",
    BlockKind.PARAGRAPH: "p",
    BlockKind.ITEM: "i",
    BlockKind.CELL: "c",
    BlockKind.QUOTE: "q",
    BlockKind.CODE: "x",
    BlockKind.LINK: "l",
    BlockKind.ALT: "a",
}

BODY, FRAME = "\t", "\x1f"
"""The mark between the letter of a kind and the text: whether the block is content or boilerplate of the page."""
LINE_LEAD = 2
"""Characters before the text of a block; the last of them is no part of a word."""
_LETTER_KINDS = {letter: kind for kind, letter in KIND_LETTERS.items()}


class StoredPage(NamedTuple):
    """A stored page. `text` has one line a block: the letter of its kind, `BODY` or `FRAME`, and its text."""

    url: str
    title: str
    language: str
    text: str

    def pack(self) -> str:
        """The text of the stored field; half characters, which no UTF-8 has, become question marks."""
        text = "\n".join(self)
        return text if text.isascii() else text.encode("utf-8", "replace").decode()

    def blocks(self) -> Iterator[Block]:
        """The blocks in document order."""
        return (Block(_LETTER_KINDS[line[0]], line[LINE_LEAD:]) for line in self.text.split("\n") if line)


def unpack_stored_page(text: str) -> StoredPage:
    """The inverse of `StoredPage.pack`."""
    return StoredPage(*text.split("\n", 3))


def pack_older_page(page: str, links: list[str]) -> str:
    """What is kept of an older version: its page, before it how many texts of links it has, and these, a line each."""
    return "\n".join([str(len(links)), *links, page])


def unpack_older_page(text: str) -> tuple[StoredPage, list[str]]:
    """The page and the texts of its links."""
    count, _, rest = text.partition("\n")
    links = int(count)
    parts = rest.split("\n", links + 3)
    return StoredPage(*parts[links:]), parts[:links]


def stored_lines(page: Page) -> list[tuple[Block, str]]:
    """Blocks with settled text, and the line of each; then what links say when the mouse rests on them."""
    made = [Block(kind, one_line(text)) for kind, text in page.blocks]
    lines = [
        (block, f"{KIND_LETTERS[block.kind]}{FRAME if at in page.frame else BODY}{block.text}")
        for at, block in enumerate(made)
    ]
    hidden = [Block(BlockKind.LINK, title) for title in _link_titles(page)]
    return lines + [(block, f"{KIND_LETTERS[block.kind]}{FRAME}{block.text}") for block in hidden]


_HTML = ("text/html", "application/xhtml+xml")


def _link_titles(page: Page) -> list[str]:
    """The `title=` of links, each once, but those that only repeat the text. Entries of feeds have dates there."""
    if page.content_type not in _HTML:
        return []
    titles = (one_line(link.title).strip() for link in page.links if link.title and link.title != link.text)
    return list(dict.fromkeys(filter(None, titles)))


def one_line(text: str) -> str:
    """Settled text without line ends, which separate blocks."""
    return nfc(text if "\n" not in text else text.replace("\n", " "))


class WordsTogether(NamedTuple):
    """Consecutive words in one block, of one of the given kinds if there are any."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]
    letters: str
    links: bool

    @classmethod
    def of(cls, words: tuple[str, ...], prefix: bool, kinds: tuple[str, ...]) -> WordsTogether:
        """The words of a phrase, of which the last may go on where it is a `prefix`."""
        return cls._in(words, _together(words, prefix), kinds)

    @classmethod
    def one_of(cls, word: str, forms: Iterable[str], kinds: tuple[str, ...]) -> WordsTogether:
        """Any of the forms of a word."""
        return cls._in((word,), "|".join([_together((form,), False) for form in forms]), kinds)

    @classmethod
    def beginning(cls, word: str, pattern: str, kinds: tuple[str, ...]) -> WordsTogether:
        """Words that begin like this one, by a pattern of them."""
        return cls._in((f"{word}*",), pattern if is_solid(word) else first_in_word(pattern, _INSIDE), kinds)

    @classmethod
    def _in(cls, words: tuple[str, ...], pattern: str, kinds: tuple[str, ...]) -> WordsTogether:
        letters = "".join(KIND_LETTERS[BlockKind(kind)] for kind in kinds)
        return cls(words, re.compile(pattern), letters, BlockKind.LINK in kinds)

    def stands_in(self, page: StoredPage, links: list[str]) -> bool:
        """Whether a page has them so; texts of links stand in other blocks, too, and count for their kind alone."""
        text = lowered(page.text)
        if self.pattern.search(text) and any(
            self.pattern.search(line, LINE_LEAD)
            for line in text.split("\n")
            if not self.letters or line[:1] in self.letters
        ):
            return True
        return self.links and any(map(self.pattern.search, links))


_INSIDE = f"(?:{_LETTER}|[{_MARKS}])"
"""A letter or a mark that is no word of its own."""


def first_in_word(pattern: str, letter: str) -> str:
    """A regular expression of what a pattern finds where no letter precedes it."""
    if "|" in pattern or "*" in pattern:
        return f"(?<!{letter}){pattern}"
    # Tested last if it always has as many letters: a pattern that begins with these is searched several times faster.
    return f"{pattern}(?<!{letter}{pattern})"


def _together(words: tuple[str, ...], prefix: bool) -> str:
    """A regular expression of words with no other word between or around them."""
    found = [word + (f"{_INSIDE}*" if len(word) == MAX_WORD_LENGTH else "") for word in map(re.escape, words)]
    if is_solid(words[0]):
        found[0] = f"(?<!{_STACKED}){found[0]}"
    elif len(words[0]) < MAX_WORD_LENGTH:
        found[0] = first_in_word(found[0], _INSIDE)
    text = found[0]
    for before, word, part in zip(words, words[1:], found[1:], strict=False):
        ends = END_OF_SOLID if is_solid(before) else f"(?![{_MARKS}])"
        text += f"{ends}[^\\w{_SOLID}]{'*' if is_solid(before) or is_solid(word) else '+'}{part}"
    return text if prefix else text + (END_OF_SOLID if is_solid(words[-1]) else f"(?!{_INSIDE})")


_HEAD_LETTERS = frozenset("tkd")
_RUN, _RUN_WORDS = 4, 400
"""Words of a run, and words of a page of which runs are made."""
_NEARLY = 0.9
"""Share of common runs of words from which on two texts are nearly the same."""


def text_runs(text: str) -> frozenset[str]:
    """Runs of words of a stored page's own text, by which pages with nearly the same text are told."""
    own = (line[LINE_LEAD:] for line in text.split("\n") if line[1:LINE_LEAD] == BODY and line[0] not in _HEAD_LETTERS)
    words = [word for line in own for word in split_words(line)][:_RUN_WORDS]
    return frozenset(" ".join(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1)) if words)


class NearTexts:
    """Texts by their runs of words; finds the first that is nearly the same as another one without comparing all."""

    def __init__(self) -> None:
        self._texts: list[frozenset[str]] = []
        self._having: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, runs: frozenset[str]) -> None:
        """One more, after all others."""
        for run in runs:
            self._having[run].append(len(self._texts))
        self._texts.append(runs)

    def first_near(self, runs: frozenset[str]) -> int | None:
        """The place of the first with which these runs are nearly the same."""
        # It lacks fewer than these: so it has one of them.
        some = sorted(runs, key=lambda run: len(self._having.get(run, ())))[: 1 + len(runs) - int(_NEARLY * len(runs))]
        places = sorted({place for run in some for place in self._having.get(run, ())})
        return next((place for place in places if _is_near(runs, self._texts[place])), None)


def _is_near(first: frozenset[str], second: frozenset[str]) -> bool:
    return len(first & second) >= _NEARLY * len(first | second) > 0


_CONTEXT = 90
"""Characters shown on each side of a hit."""
_MAX_SNIPPET = 240
_OWN_TEXT = re.compile(f"^.{BODY}", re.MULTILINE)
_PROSE = re.compile(f"^[^tkd1-6]{BODY}", re.MULTILINE)
_LEAST, _BETWEEN = 80, " · "
"""Characters that a snippet has where the page goes on: a name, a price or a link alone says little."""
_MAX_WEIGHED_HITS = 40
"""Hits of one page that are weighed against each other."""


class Snippet(NamedTuple):
    """A piece of one block, of a short one with those behind it, and where in it the hits are."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    @property
    def hits(self) -> tuple[str, ...]:
        """The words that were found, each once, as written."""
        return tuple(dict.fromkeys([self.text[start:end] for start, end in self.marks]))

    @property
    def html(self) -> str:
        """Safe to put into a page: everything escaped, hits in `<mark>`."""
        return self.marked("<mark>", "</mark>", escape)

    def marked(self, before: str, after: str, change: Callable[[str], str] = str) -> str:
        """The text with something around each hit, all of it passed through `change`."""
        parts, at = [], 0
        for start, end in self.marks:
            parts += [change(self.text[at:start]), before, change(self.text[start:end]), after]
            at = end
        return "".join([*parts, change(self.text[at:])])


def snippet(text: str, pattern: re.Pattern[str] | None, low: str = "") -> Snippet:
    """The best place of a page: most different words of the question together, and of equal places the first.

    The page's own text comes before its frame (menus, footers), which comes before its head. Without a hit, or with one
    in the title alone, which stands above it anyway, the first words of the body. `low` is the text in small letters,
    where that is known.
    """
    body, low = _body_start(text), low or lowered(text)
    hit = None if pattern is None else pattern.search(low, body) or pattern.search(low)
    if hit is None or pattern is None:
        return _opening(text, low, body, pattern)
    line = _line_of(low, hit)
    if pattern.groups > 1 or low[line + 1] != BODY:
        hit = _best_hit(low, body, pattern) or hit
        line = _line_of(low, hit)
    if text[0] == "t" and _says_the_title(text, line) and (prose := _PROSE.search(text, hit.end())):
        body, later = prose.start(), islice(pattern.finditer(low, prose.start()), _MAX_WEIGHED_HITS)
        lines = ((one, _line_of(low, one)) for one in later)
        said = (found for found in lines if not _is_in_frame(low, found[1]) and not _says_the_title(text, found[1]))
        hit, line = next(said, (None, 0))
        if hit is None:
            return _opening(text, low, body, pattern)
    return _context_of(text, low, line, hit, pattern)


def _best_hit(low: str, body: int, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """The hit with most of the question around it, of those behind the head of a page."""

    def worth(hit: re.Match[str]) -> tuple[int, bool, int]:
        return _variety(low, hit, hits), not _is_in_frame(low, _line_of(low, hit)), -hit.start()

    hits = list(islice(pattern.finditer(low, body), _MAX_WEIGHED_HITS))
    return max(hits, key=worth, default=None)


def _line_of(text: str, hit: re.Match[str]) -> int:
    """Where the line of a hit begins."""
    return text.rfind("\n", 0, hit.start()) + 1


def _is_in_frame(text: str, line: int) -> bool:
    return text[line + 1] == FRAME


def _says_the_title(text: str, line: int) -> bool:
    """Whether the block of a line is the title, which comes first, or repeats it or its part."""
    title = text.find("\n")
    # One character more than the title has is enough to see that a block is longer.
    return text[line + LINE_LEAD : line + title + 1].partition("\n")[0] in text[LINE_LEAD:title]


def _body_start(text: str) -> int:
    """Where the first block begins that is neither title, keywords nor description."""
    at = 0
    while text[at : at + 1] in _HEAD_LETTERS and at < len(text):
        end = text.find("\n", at)
        if end < 0:
            return 0
        at = end + 1
    return at


def _opening(text: str, low: str, body: int, pattern: re.Pattern[str] | None) -> Snippet:
    """The first block of the page's own text."""
    own = _OWN_TEXT.search(text, body)
    start = own.start() if own else body
    end = text.find("\n", start)
    block = text[start + LINE_LEAD : end if end >= 0 else len(text)]
    if len(block) <= _MAX_SNIPPET:
        return _going_on(Snippet(block), text, low, start, pattern)
    blank = block.rfind(" ", 0, _MAX_SNIPPET)
    return Snippet(block[: blank if blank > 0 else _MAX_SNIPPET] + " …")


def _variety(text: str, hit: re.Match[str], hits: list[re.Match[str]]) -> int:
    end = text.find("\n", hit.start())
    limit = min(hit.start() + _MAX_SNIPPET - _CONTEXT, end if end >= 0 else len(text))
    return len({other.lastindex for other in hits if hit.start() <= other.start() < limit})


def _context_of(text: str, low: str, line: int, hit: re.Match[str], pattern: re.Pattern[str]) -> Snippet:
    """The surroundings of a hit within the block of its line, cut between words, with all hits in them marked."""
    start, end = hit.span()
    first, last = line + LINE_LEAD, text.find("\n", end)
    if last < 0:
        last = len(text)
    begin = first if start - first <= _CONTEXT else text.find(" ", start - _CONTEXT, start) + 1 or start - _CONTEXT
    until = max(end + _CONTEXT, begin + _MAX_SNIPPET)
    stop = last if until >= last else max(end, text.rfind(" ", end, until))
    lead = "… " if begin > first else ""
    shift = len(lead) - begin
    marks: list[tuple[int, int]] = []
    # Of one term it is the first of its block, unless it is the letter of the kind.
    found = hit if pattern.groups == 1 and start >= begin else pattern.search(low, begin, stop)
    while found is not None:
        opens, closes = found.span()
        marks.append((opens + shift, closes + shift))
        found = pattern.search(low, closes, stop)
    made = Snippet(f"{lead}{text[begin:stop]}{' …' if stop < last else ''}", tuple(marks))
    return made if stop - begin >= _LEAST else _going_on(made, text, low, line, pattern)


def _going_on(made: Snippet, text: str, low: str, line: int, pattern: re.Pattern[str] | None) -> Snippet:
    """A short snippet with the blocks behind its own `line`, as long as these are content, or frame, like that."""
    while len(made.text) < _LEAST:
        after = text.find("\n", line) + 1
        if not after or text[after + 1 : after + LINE_LEAD] != text[line + 1 : line + LINE_LEAD]:
            break
        line, start, end = after, after + LINE_LEAD, text.find("\n", after)
        end = len(text) if end < 0 else end
        stop = end if end - start <= _CONTEXT else max(start, text.rfind(" ", start, start + _CONTEXT))
        if start < stop and text[start:stop] not in made.text:
            shift = len(made.text) + len(_BETWEEN) - start
            found = pattern.finditer(low, start, stop) if pattern is not None else ()
            marks = tuple((one.start() + shift, one.end() + shift) for one in found)
            more = f"{_BETWEEN}{text[start:stop]}{' …' if stop < end else ''}"
            made = Snippet(made.text + more, made.marks + marks)
    return made
