"""The kinds of hosts and the shape of their addresses.

Pages of a host are numbered from 0 and form a tree in the order of a heap: the children of page i are i * BRANCH + 1
to i * BRANCH + BRANCH. Page 0 is the home page, the pages 1 to BRANCH are sections. So every page can be reached
from the home page, and an address tells its number without a table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from letopis_demo.languages import CZECH, ENGLISH, RUSSIAN, SLOVAK, DemoLanguage

BRANCH = 12
_LEAF = re.compile(r"/[a-z-]+/[a-z]+-(\d{1,12})(-[a-z]+)?\.html", re.ASCII)
_SECTION = re.compile(r"/([a-z-]+)/", re.ASCII)


@dataclass(frozen=True, slots=True)
class SiteKind:
    """What hosts of one kind have in common. `words` name leaf pages, `moved` marks the new address of a moved one."""

    name: str
    language: DemoLanguage
    brand: str
    sections: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    footer: str
    moved: str = "new"
    charset: str = "utf-8"


def _sections(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((slug, label) for slug, label in (item.split("=") for item in text.split(";")))


UNIVERSITY = SiteKind(
    name="university",
    language=CZECH,
    brand="Univerzita v Letohradě nad Sítí",
    sections=_sections(
        "katedra-informatiky=Katedra informatiky;katedra-matematiky=Katedra matematiky;katedra-fyziky=Katedra fyziky;"
        "lide=Lidé;predmety=Předměty;studium=Studium;veda=Věda a výzkum;knihovna=Knihovna;rozvrhy=Rozvrhy;"
        "prijimaci-rizeni=Přijímací řízení;uredni-deska=Úřední deska;kontakty=Kontakty"
    ),
    words=("predmet", "osoba", "projekt", "seminar"),
    footer="Stránky spravuje oddělení informačních služeb. Všechny údaje jsou smyšlené.",
    moved="nova",
)
NEWS = SiteKind(
    name="news",
    language=CZECH,
    brand="Denní letopis",
    sections=_sections(
        "domaci=Domácí;zahranici=Zahraničí;ekonomika=Ekonomika;kultura=Kultura;sport=Sport;veda=Věda;nazory=Názory;"
        "regiony=Regiony;doprava=Doprava;pocasi=Počasí;cestovani=Cestování;archiv=Archiv"
    ),
    words=("clanek", "zprava", "rozhovor"),
    footer="Přetiskování zpráv je v tomto smyšleném světě povoleno.",
    moved="nova",
)
SHOP = SiteKind(
    name="shop",
    language=ENGLISH,
    brand="Quill and Lantern",
    sections=_sections(
        "books=Books;maps=Maps;lamps=Lamps;paper=Paper;pens=Pens;tools=Tools;bags=Bags;clocks=Clocks;prints=Prints;"
        "frames=Frames;sale=Sale;help=Help"
    ),
    words=("item", "set", "offer"),
    footer="Prices include tax. Nothing on these pages can really be bought.",
)
DOCS = SiteKind(
    name="docs",
    language=ENGLISH,
    brand="Field Notes on Archives",
    sections=_sections(
        "start=Getting started;guide=Guide;reference=Reference;formats=Formats;recipes=Recipes;notes=Notes;faq=FAQ;"
        "releases=Releases;design=Design;blog=Blog;people=People;about=About"
    ),
    words=("note", "chapter", "entry"),
    footer="Written for readers who like to check things. Corrections are welcome.",
)
RUSSIAN_SITE = SiteKind(
    name="journal",
    language=RUSSIAN,
    brand="Сетевой журнал",
    sections=_sections(
        "novosti=Новости;stati=Статьи;nauka=Наука;kultura=Культура;goroda=Города;istoriya=История;knigi=Книги;"
        "obrazovanie=Образование;pisma=Письма;arhiv=Архив;avtory=Авторы;kontakty=Контакты"
    ),
    words=("statya", "zametka"),
    footer="Все имена и события на этих страницах вымышлены.",
    moved="novaya",
)
SLOVAK_SITE = SiteKind(
    name="town",
    language=SLOVAK,
    brand="Mesto Letopisné",
    sections=_sections(
        "urad=Mestský úrad;uradna-tabula=Úradná tabuľa;oznamy=Oznamy;kultura=Kultúra;skoly=Školy;doprava=Doprava;"
        "zivotne-prostredie=Životné prostredie;historia=História;sluzby=Služby;rozpocet=Rozpočet;"
        "zastupitelstvo=Zastupiteľstvo;kontakty=Kontakty"
    ),
    words=("oznam", "sprava", "zmluva"),
    footer="Stránky mesta, ktoré neexistuje.",
    moved="nova",
    charset="windows-1250",
)
KINDS = (UNIVERSITY, NEWS, SHOP, DOCS, RUSSIAN_SITE, SLOVAK_SITE)
CYCLE = len(KINDS) + 1
"""Hosts repeat the kinds in this order; the last one of each cycle mirrors the first one."""


def mirrored_host(host: int) -> int:
    """The host whose pages this host shows: itself, unless it is a mirror."""
    return host - len(KINDS) if host % CYCLE == len(KINDS) else host


def kind_of(host: int) -> SiteKind:
    """What kind of site a host is."""
    return KINDS[mirrored_host(host) % CYCLE]


def parent_page(page: int) -> int:
    """The page above; the home page is above itself."""
    return max(0, (page - 1) // BRANCH)


def child_pages(page: int, pages: int) -> range:
    """The pages right below, of a host with that many pages."""
    first = page * BRANCH + 1
    return range(min(first, pages), min(first + BRANCH, pages))


def section_of(page: int) -> int:
    """The section a page belongs to, from 1 on; 0 for the home page."""
    while page > BRANCH:
        page = parent_page(page)
    return page


def page_path(kind: SiteKind, page: int, moved: bool = False) -> str:
    """The address of a page on its host; `moved` gives the one after its move."""
    if page == 0:
        return "/"
    slug = kind.sections[section_of(page) - 1][0]
    if page <= BRANCH:
        return f"/{slug}/"
    mark = f"-{kind.moved}" if moved else ""
    return f"/{slug}/{kind.words[page % len(kind.words)]}-{page}{mark}.html"


def page_at(kind: SiteKind, address: str) -> tuple[int, bool] | None:
    """The page with that path and whether it is the path after a move; None when there is none."""
    if address == "/":
        return 0, False
    leaf = _LEAF.fullmatch(address)
    if leaf:
        page, moved = int(leaf[1]), leaf[2] is not None
        return (page, moved) if page > BRANCH and page_path(kind, page, moved) == address else None
    match = _SECTION.fullmatch(address)
    slugs = [slug for slug, _ in kind.sections]
    return (slugs.index(match[1]) + 1, False) if match and match[1] in slugs else None
