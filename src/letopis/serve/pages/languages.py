"""The languages of the pages: which one a reader gets, and how it says a text.

English is the text itself. Other languages lie beside as PO files. A page is
rendered inside `speaking`, so that templates, their macros and filters all
answer in one language without handing it on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any

from fastapi import Request
from markupsafe import Markup, escape

from letopis.serve.access import principal_of
from letopis.serve.pages.catalogue import Catalogue, read_catalogue

COOKIE = "letopis_language"
_FOLDER = Path(__file__).parent.parent / "languages"
_RANGE = re.compile(r"([a-z]{1,8})(?:-[a-z0-9-]{1,30})?(?:;q=([01](?:\.\d{1,3})?))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Language:
    """One language. `form` tells which plural form a count takes."""

    code: str
    name: str
    form: Callable[[int], int]
    decimal: str = "."
    known: Catalogue = field(default_factory=lambda: Catalogue({}, {}))

    def text(self, message: str) -> str:
        """The text in this language; itself where there is no other."""
        return self.known.texts.get(message, message)

    def plural(self, one: str, many: str, count: int) -> str:
        """The form that fits a count."""
        forms = self.known.plurals.get((one, many), (one, many))
        return forms[self.form(count)] if len(forms) > self.form(count) else many


def _english(count: int) -> int:
    return 0 if count == 1 else 1


def _czech(count: int) -> int:
    if count == 1:
        return 0
    return 1 if 2 <= count <= 4 else 2


ENGLISH = Language("en", "English", _english)
CZECH = Language("cs", "Čeština", _czech, ",", read_catalogue(_FOLDER / "cs.po"))
LANGUAGES: Mapping[str, Language] = {language.code: language for language in (ENGLISH, CZECH)}
_speaks: ContextVar[Language] = ContextVar("letopis_language", default=ENGLISH)


def spoken() -> Language:
    """The language of the page that is being made."""
    return _speaks.get()


@contextmanager
def speaking(language: Language) -> Iterator[Language]:
    """Everything inside is said in a language."""
    token = _speaks.set(language)
    try:
        yield language
    finally:
        _speaks.reset(token)


def say(message: str, /, **values: Any) -> Markup:
    """A text of ours with values in its `{places}`; values are escaped unless they are markup."""
    text = escape(spoken().text(message))
    return text.format(**values) if values else text


def say_count(one: str, many: str, count: int, /, **values: Any) -> Markup:
    """The same for a text with a number, which stands in its place `{n}`."""
    text = escape(spoken().plural(one, many, count))
    # Formatting takes ten times as long, and long lists have a number in every row.
    return text.format(n=grouped(count), **values) if values else Markup(str(text).replace("{n}", grouped(count)))  # noqa: S704


def marked(message: str) -> str:
    """Marks a text that a template says later; itself until then."""
    return message


def grouped(count: int) -> str:
    """`12 345`, with a blank that does not break."""
    return f"{count:,}".replace(",", "\u202f")


def language_of(request: Request) -> Language:
    """What the reader chose here, else set for their account, else told by their browser."""
    chosen = LANGUAGES.get(_cookie(request))
    if chosen is None and (session := principal_of(request).session) is not None:
        chosen = LANGUAGES.get(session.user.language)
    return chosen or preferred(request.headers.get("accept-language", ""))


def preferred(header: str) -> Language:
    """The best of an Accept-Language; English when none of ours is in it."""
    best, weight = ENGLISH, 0.0
    for part in header.split(",")[:20]:
        found = _RANGE.fullmatch(part.replace(" ", ""))
        if found and found[1].lower() in LANGUAGES and float(found[2] or 1) > weight:
            best, weight = LANGUAGES[found[1].lower()], float(found[2] or 1)
    return best


def _cookie(request: Request) -> str:
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""
