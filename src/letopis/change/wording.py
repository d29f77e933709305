"""Wordings that say nothing of their own: labels of headings, ornaments of titles, filler, notices to agree to."""

from __future__ import annotations

import re
from collections.abc import Iterable

from letopis.change.text_forms import words_form

_NAMES = (
    r"appendix|annex|section|chapter|part|anhang|abschnitt|kapitel|teil|annexe|chapitre|partie|anexo|sección|capítulo|"
    r"příloha|oddíl|kapitola|část|príloha|oddiel|časť|приложение|раздел|глава|часть"
)
_NUMERAL = r"(?:\d{1,4}|[a-z]|[ivxlc]{1,8})(?:\.\d{1,4}){0,6}"
_PARTS = r"\d{1,4}(?:\.\d{1,4}){1,6}"
_LABEL = re.compile(
    rf"\s*(?:(?:{_NAMES})\s+{_NUMERAL}[.:)]?|{_NUMERAL}[.:)]|{_PARTS})(?:\s*[-–—])?\s+(?=\w)", re.IGNORECASE
)
_ALPHABETS = "abcdefghijklmnopqrstuvwxyz" * 8
_LEAST_RUN, _MOST_FILLER = 6, 200
_LOREM = "lorem ipsum dolor"
_FOREIGN = re.compile(
    r"third[- ]part(?:y|ies)|external (?:content|media)|cookies?\b|drittanbieter|drittinhalt|extern\w{0,3} inhalt|"
    r"contenus? (?:tiers|externes?)|contenidos? (?:de terceros|externos?)|třetích stran|extern\w{0,4} obsah|"
    r"tretích strán|сторонн\w{1,4} (?:контент|содерж)|файл\w{0,3} cookie",
    re.IGNORECASE,
)
_AGREE = re.compile(
    r"\b(?:consent|i agree|you agree|accept|allow|activate|einverstanden|zustimm\w{0,6}|aktivieren|akzeptieren|"
    r"accepte[rz]?|consentement|acept\w{1,4}|consentimiento|souhlas\w{0,6}|přijmout|povolit|súhlas\w{0,6}|"
    r"соглас\w{1,6}|принять|разрешить)\b",
    re.IGNORECASE,
)
_ADVERTS = re.compile(
    r"anzeigen?|werbung|advert(?:isement)?s?|sponsored|promoted|reklama|reklamní sdělení|inzerce|inzerát|"
    r"publicité|annonce|publicidad|anuncio|реклама"
)
_MOST_NOTICE = 1000
_MOST_ASKING = 8
_MOST_LABEL = 40


def unlabelled(heading: str) -> str:
    """A heading without its number or letter: the same for "B. Sources", "Appendix B. Sources" and "7.2) Sources"."""
    return words_form(_LABEL.sub("", heading[:_MOST_NOTICE], count=1))


def only_adorned(old: str, new: str, said: str) -> bool:
    """Whether a title has the words of the other, and besides only words that the page says anyway."""
    before, after = words_form(old).split(), words_form(new).split()
    short, long = sorted((before, after), key=len)
    at = next((n for n in range(len(long) - len(short) + 1) if long[n : n + len(short)] == short), None)
    if not short or at is None:
        return False
    more = long[:at] + long[at + len(short) :]
    return bool(more) and " ".join(more) in said


def names_adverts(text: str) -> bool:
    """Whether a text is the label that advertisements must carry, and nothing else."""
    return len(text) <= _MOST_LABEL and _ADVERTS.fullmatch(words_form(text)) is not None


def is_filler(text: str) -> bool:
    """Whether a text only shows how text looks: the alphabet in its order, again and again, or the printers' Latin."""
    if len(text) > _MOST_FILLER and _LOREM not in text[:_MOST_FILLER].lower():
        return False
    run = words_form(text).replace(" ", "")
    return words_form(text[:_MOST_FILLER]).startswith(_LOREM) or (len(run) >= _LEAST_RUN and run in _ALPHABETS)


def asks_to_agree(texts: list[str]) -> bool:
    """Whether texts that stand together ask to agree to what others bring onto the page, and say nothing else."""
    if not 2 <= len(texts) <= _MOST_ASKING or any(len(text) > _MOST_NOTICE for text in texts):
        return False
    said = [bool(_FOREIGN.search(text)) + 2 * bool(_AGREE.search(text)) for text in texts]
    return all(said) and 3 in said


def speaks_of_agreeing(texts: Iterable[str]) -> bool:
    """Whether a page itself is about what others bring onto pages, as its terms or its privacy statement are."""
    return any(_FOREIGN.search(text[:_MOST_NOTICE]) for text in texts)
