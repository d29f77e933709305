"""The languages of the pages: PO catalogues, which language a reader gets, and how it says a text.

English is the text itself. Other languages lie beside as PO files. A page is rendered inside `use_language`, so that
templates, their macros and filters all answer in one language without handing it on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any

from fastapi import Request
from markupsafe import Markup, escape

from letopis.api.access import principal_of
from letopis.errors import Damaged
from letopis.tuples import NamedTuple

_LINE = re.compile(r'(msgid|msgid_plural|msgstr|msgstr\[(\d)\])?\s*("(?:[^"\\]|\\.)*")')


class Translations(NamedTuple):
    """What one language calls our texts; `plurals` has all forms of a text with a number."""

    texts: dict[str, str]
    plurals: dict[tuple[str, str], tuple[str, ...]]


def read_translations(path: Path) -> Translations:
    """A PO file; the entry of the empty text, its header, is left out."""
    found = Translations({}, {})
    for entry in _po_entries(path):
        if entry.get("msgid_plural"):
            forms = tuple(entry[name] for name in sorted(entry) if name.startswith("msgstr["))
            found.plurals[entry["msgid"], entry["msgid_plural"]] = forms
        elif entry.get("msgid"):
            found.texts[entry["msgid"]] = entry["msgstr"]
    return found


def _po_entries(path: Path) -> Iterator[dict[str, str]]:
    entry: dict[str, str] = {}
    part = ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        found = _LINE.fullmatch(text)
        if found is None or not (found[1] or part):
            raise Damaged(f"line {number} of {path.name} is not an entry of a PO file; install Letopis again")
        if found[1] == "msgid" and entry:
            yield entry
            entry = {}
        part = found[1] or part
        entry[part] = entry.get(part, "") + ast.literal_eval(found[3])
    if entry:
        yield entry


LANGUAGE_COOKIE = "letopis_language"
_FOLDER = Path(__file__).parent / "translations"
_RANGE = re.compile(r"([a-z]{1,8})(?:-[a-z0-9-]{1,30})?(?:;q=([01](?:\.\d{1,3})?))?", re.IGNORECASE)


class PageLanguage(NamedTuple):
    """One language. `form` tells which plural form a count takes."""

    code: str
    name: str
    form: Callable[[int], int]
    decimal: str = "."

    @property
    def known(self) -> Translations:
        """Its texts, read when a page is first made in it."""
        return _translations(self.code)

    def text(self, message: str) -> str:
        """The text in this language; itself where there is no other."""
        return self.known.texts.get(message, message)

    def plural(self, one: str, many: str, count: int) -> str:
        """The form that fits a count."""
        forms = self.known.plurals.get((one, many), (one, many))
        return forms[self.form(count)] if len(forms) > self.form(count) else many


@cache
def _translations(code: str) -> Translations:
    return read_translations(_FOLDER / f"{code}.po") if code != ENGLISH.code else Translations({}, {})


def _english(count: int) -> int:
    return 0 if count == 1 else 1


def _czech(count: int) -> int:
    if count == 1:
        return 0
    return 1 if 2 <= count <= 4 else 2


ENGLISH = PageLanguage("en", "English", _english)
CZECH = PageLanguage("cs", "Čeština", _czech, ",")
LANGUAGES: Mapping[str, PageLanguage] = {language.code: language for language in (ENGLISH, CZECH)}
_TONGUES = {
    "bg": "български", "cs": "čeština", "da": "dansk", "de": "Deutsch", "el": "ελληνικά", "en": "English",
    "es": "español", "et": "eesti", "fi": "suomi", "fr": "français", "hr": "hrvatski", "hu": "magyar",
    "it": "italiano", "ja": "日本語", "lt": "lietuvių", "lv": "latviešu", "nl": "Nederlands", "no": "norsk",
    "pl": "polski", "pt": "português", "ro": "română", "ru": "русский", "sk": "slovenčina", "sl": "slovenščina",
    "sr": "српски", "sv": "svenska", "tr": "Türkçe", "uk": "українська", "zh": "中文",
}  # fmt: skip


def language_name(code: str) -> str:
    """What speakers of a language call it; its code where we do not know that."""
    return _TONGUES.get(code.partition("-")[0].lower(), code)


_current: ContextVar[PageLanguage] = ContextVar("letopis_language", default=ENGLISH)


def current_language() -> PageLanguage:
    """The language of the page that is being made."""
    return _current.get()


@contextmanager
def use_language(language: PageLanguage) -> Iterator[PageLanguage]:
    """Everything inside is said in a language."""
    token = _current.set(language)
    try:
        yield language
    finally:
        _current.reset(token)


def translate(message: str, /, **values: Any) -> Markup:
    """A text of ours with values in its `{places}`; values are escaped unless they are markup."""
    text = escape(current_language().text(message))
    return text.format(**values) if values else text


def translate_count(one: str, many: str, count: int, /, **values: Any) -> Markup:
    """The same for a text with a number, which stands in its place `{n}`."""
    text = escape(current_language().plural(one, many, count))
    # Formatting takes ten times as long, and long lists have a number in every row.
    return text.format(n=grouped(count), **values) if values else Markup(str(text).replace("{n}", grouped(count)))  # noqa: S704


def translatable(message: str) -> str:
    """Marks a text that a template says later; itself until then."""
    return message


def grouped(count: int) -> str:
    """`12 345`, with a blank that does not break."""
    return f"{count:,}".replace(",", "\u202f")


def language_of(request: Request) -> PageLanguage:
    """What the reader chose here, else set for their account, else told by their browser."""
    chosen = LANGUAGES.get(_cookie(request))
    if chosen is None and (session := principal_of(request).session) is not None:
        chosen = LANGUAGES.get(session.user.language)
    return chosen or preferred_language(request.headers.get("accept-language", ""))


def preferred_language(header: str) -> PageLanguage:
    """The best of an Accept-Language; English when none of ours is in it."""
    best, weight = ENGLISH, 0.0
    for part in header.split(",")[:20]:
        found = _RANGE.fullmatch(part.replace(" ", ""))
        if found and found[1].lower() in LANGUAGES and float(found[2] or 1) > weight:
            best, weight = LANGUAGES[found[1].lower()], float(found[2] or 1)
    return best


def _cookie(request: Request) -> str:
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(LANGUAGE_COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""
