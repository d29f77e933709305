"""The language of a text: cheap agreement with what the page declares, a model otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module

from letopis.model import Block, BlockKind

_SAMPLE = 480
_LEAST = 24
_WORD = re.compile(r"[^\W\d_]+")
# Short words that a text of the language can hardly avoid and that its neighbours lack.
_COMMON = {
    "cs": "je se že na v to jsou který která které při byl bylo také jsem může nebo ale podle více pro již",
    "sk": "je sa že na v to sú ktorý ktorá ktoré pri bol bolo tiež som môže alebo ale podľa viac pre už",
    "en": "the of and to in is that for with was are this be from have by not at as it",
    "de": "der die und das ist nicht mit den von für auf ein eine zu im dem sich des auch werden",
    "ru": "и в не на что с по это как из для от его но они был а также к или",
    "pl": "w i na nie się z do jest to że od przez po jak ale dla oraz jego są przy",
    "fr": "le la les des et est une dans que pour qui sur pas par avec au ce il sont du",
    "es": "el la los las de que y en un una por con para es del se al lo como más",
    "it": "il di che la è e per un una del con non sono della dei si le da nel più",
}
_NEEDED = 0.10
_NOT_PROSE = (BlockKind.KEYWORDS, BlockKind.ALT, BlockKind.CODE)


def primary(tag: str) -> str:
    """`cs` of `cs-CZ`, `cs_CZ.UTF-8` and `CS`; nothing for what is no language tag."""
    head = re.split(r"[-_.,; ]", tag.strip().lower()[:35], maxsplit=1)[0]
    return head if 2 <= len(head) <= 3 and head.isascii() and head.isalpha() else ""


def detect(blocks: Sequence[Block], declared: str = "") -> str:
    """The language of the longest blocks, at a bounded cost; `declared` where there is too little text."""
    text = _prose(blocks)
    if len(text) < _LEAST:
        return declared
    return declared if _agrees(text, declared) else _model()(text)


def _prose(blocks: Sequence[Block]) -> str:
    """The start of the longest blocks: running text rather than menus."""
    chosen: list[str] = []
    room = _SAMPLE
    for kind, text in sorted(blocks[:400], key=_length, reverse=True)[:6]:
        if kind not in _NOT_PROSE and room > 0:
            chosen.append(text[:room])
            room -= len(text)
    return " ".join(chosen)


def _length(block: Block) -> int:
    return len(block.text)


@lru_cache(maxsize=len(_COMMON))
def _common(language: str) -> frozenset[str]:
    own = frozenset(_COMMON.get(language, "").split())
    # Czech and Slovak share many words; only the others tell them apart.
    neighbour = {"cs": "sk", "sk": "cs"}.get(language, "")
    return own - frozenset(_COMMON.get(neighbour, "").split())


def _agrees(text: str, language: str) -> bool:
    """Whether the words confirm the declared language, so that the model is not asked."""
    if language not in _COMMON:
        return False
    words = _WORD.findall(text.lower())
    needed = _NEEDED / 2 if language in ("cs", "sk") else _NEEDED
    common = _common(language)
    return len(words) >= 12 and sum(word in common for word in words) >= needed * len(words)


@lru_cache(maxsize=1)
def _model() -> Callable[[str], str]:
    """The classifier; loading it takes most of a second, so only a page that needs it pays."""
    classify: Callable[[str], tuple[str, float]] = import_module("py3langid").classify
    return lambda text: str(classify(text)[0])
