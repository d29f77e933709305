"""Five sites that live through a year: a shop, a ministry, a newspaper, a university and a wiki.

Every page is a pure function of a seed and of the day of the year, in plain English, Czech or Russian. Things happen on
known days, so that whoever looks at the year finds what the first page of the demo promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from random import Random

DAYS = 365
SHOP, MINISTRY, NEWS, UNIVERSITY, WIKI = (
    "shop.example", "ministerstvo.example", "novosti.example", "univerzita.example", "wiki.example",
)  # fmt: skip
DEADLINE_DAY = 151
"""The ministry gives half the time from now on."""
GONE_DAY = 203
"""The shop drops a product; its list names it for some weeks more."""
LIST_MENDED_DAY = 238
MOVED_DAY = 246
"""A course gets another address."""
OUTAGE = range(112, 133)
"""The ministry does not answer."""
QUARREL = range(282, 310)
"""Two people write the same article of the wiki in turns."""
SALE = range(318, 332)


@dataclass(frozen=True, slots=True)
class StoryPage:
    """What one address answers on one day."""

    url: str
    status: int = 200
    html: str = ""
    location: str = ""


def _page(site: str, path: str, language: str, title: str, parts: Iterator[str] | list[str], menu: str) -> StoryPage:
    html = (
        f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8"><title>{escape(title)}</title></head>\n'
        f"<body>\n<nav>{menu}</nav>\n<main>\n<h1>{escape(title)}</h1>\n" + "\n".join(parts) + "\n</main>\n"
        f"<footer><p>{site}</p></footer>\n</body></html>\n"
    )
    return StoryPage(f"http://{site}{path}", html=html)


def _link(path: str, text: str) -> str:
    return f'<a href="{path}">{escape(text)}</a>'


def _menu(links: dict[str, str]) -> str:
    return " ".join(_link(path, text) for path, text in links.items())


def _paragraphs(*texts: str) -> list[str]:
    return [f"<p>{escape(text)}</p>" for text in texts]


# The shop

_PRODUCTS = (
    ("green-tea", "Green tea, 100 g", 640, "Leaves from the spring harvest, dried in the shade and packed by hand."),
    ("black-tea", "Black tea, 100 g", 580, "A strong tea for the morning; it takes milk well."),
    ("honey", "Lime honey, 450 g", 890, "From hives that stand at the edge of the old lime alley."),
    ("notebook", "Notebook with lines", 420, "Ninety-six pages that open flat and do not let the ink through."),
    ("fountain-pen", "Fountain pen", 3900, "A steel nib of medium width and a body of beech wood."),
    ("lamp", "Reading lamp", 5450, "A warm light that can be turned down, with a switch on the cord."),
    ("city-map", "Map of the old town", 750, "Every lane within the walls, with the names of its houses."),
    ("atlas", "Pocket atlas", 1990, "The whole world on two hundred pages, revised this year."),
    ("kettle", "Kettle", 4700, "It holds one litre and sings before it boils."),
    ("cups", "Two cups", 1800, "Thrown on the wheel in the workshop behind the shop."),
)
_SHOP_MENU = _menu({"/": "Home", "/tea/": "All goods", "/delivery": "Delivery", "/terms": "Terms"})


def _price(seed: int, name: str, base: int, day: int) -> int:
    """Cents: a new price about every two months, a fifth less in the sale."""
    since = max((start for start in range(0, day + 1, 7) if Random(f"{seed}{name}{start}").random() < 0.12), default=0)
    price = round(base * (1 + 0.06 * (since // 60)) * Random(f"{seed}{name}{since}p").uniform(0.94, 1.08))
    return round(price * 0.8) if day in SALE else price


def _euros(cents: int) -> str:
    return f"EUR {cents // 100}.{cents % 100:02d}"


def _shop(seed: int, day: int) -> Iterator[StoryPage]:
    known = [product for product in _PRODUCTS if product[0] != "atlas" or day < LIST_MENDED_DAY]
    sale = _paragraphs("This fortnight everything costs a fifth less.") if day in SALE else []
    season = ("winter", "spring", "summer", "autumn")[(day // 91) % 4]
    yield _page(SHOP, "/", "en", "Harbour Tea and Paper", [
        *sale, *_paragraphs(
            f"Our {season} choice stands on the table by the door.",
            "We are open from nine to six, and on Saturdays until noon. Nothing on these pages can really be bought."),
        f'<p>{_link("/tea/", "See all goods")}</p>'], _SHOP_MENU)  # fmt: skip
    rows = "".join(
        f"<tr><td>{_link(f'/goods/{name}', title)}</td><td>{_euros(_price(seed, name, base, day))}</td></tr>"
        for name, title, base, _ in known
    )
    table = f"<table><tr><th>Goods</th><th>Price</th></tr>{rows}</table>"
    yield _page(SHOP, "/tea/", "en", "All goods", [*sale, table], _SHOP_MENU)
    for name, title, base, text in _PRODUCTS:
        if name == "atlas" and day >= GONE_DAY:
            yield StoryPage(f"http://{SHOP}/goods/{name}", 404, "<title>Not found</title><p>We no longer sell this.")
            continue
        stock = "Sold out; it comes again next month." if Random(f"{seed}{name}{day // 28}s").random() < 0.15 else (
            "In stock, sent within two days.")  # fmt: skip
        price = f'<p class="price">{_euros(_price(seed, name, base, day))}</p>'
        yield _page(SHOP, f"/goods/{name}", "en", title, [price, *_paragraphs(text, stock)], _SHOP_MENU)
    free = 40 if day < 180 else 60
    yield _page(SHOP, "/delivery", "en", "Delivery", _paragraphs(
        f"Parcels are free from EUR {free} on; below that they cost EUR 4.90.",
        "We send on every working day. Glass and clay travel in straw."), _SHOP_MENU)  # fmt: skip
    back = "thirty days" if day < 90 else "fourteen days"
    yield _page(SHOP, "/terms", "en", "Terms", _paragraphs(
        f"You may send back whatever you do not like within {back}, and we return the price.",
        "We keep your address for the delivery and for nothing else."), _SHOP_MENU)  # fmt: skip


# The ministry

_NOTICES = (
    "Ministerstvo vyhlašuje výběrové řízení na opravu střechy archivu v Letohradě.",
    "Úřední hodiny podatelny se od příštího týdne prodlužují do osmnácti hodin.",
    "Vláda schválila novelu zákona o archivnictví, kterou ministerstvo připravilo.",
    "Ministr navštívil okresní knihovnu a předal jí darem sto nových knih.",
    "Ministerstvo zveřejnilo výroční zprávu o činnosti a hospodaření.",
    "Žádosti o dotaci na digitalizaci lze podávat elektronicky i poštou.",
    "Veřejná konzultace k návrhu vyhlášky potrvá do konce měsíce.",
    "Nový portál občana nahradil papírové formuláře pro pět druhů žádostí.",
)
_MINISTRY_MENU = _menu({"/": "Úvod", "/zadosti": "Žádosti", "/aktuality": "Aktuality", "/dotace": "Dotace",
                        "/kontakty": "Kontakty"})  # fmt: skip


def _ministry(seed: int, day: int) -> Iterator[StoryPage]:
    if day in OUTAGE:
        for path in ("/", "/zadosti", "/aktuality", "/dotace", "/kontakty"):
            yield StoryPage(f"http://{MINISTRY}{path}", 503, "<title>503</title><p>Služba je dočasně nedostupná.")
        return
    news = [_NOTICES[Random(f"{seed}m{week}").randrange(len(_NOTICES))] for week in range(day // 14, -1, -1)][:6]
    minister = "Jana Nováková" if day < 270 else "Petr Svoboda"
    yield _page(MINISTRY, "/", "cs", "Ministerstvo paměti", _paragraphs(
        "Ministerstvo pečuje o archivy, knihovny a muzea a dohlíží na to, aby se na nic důležitého nezapomnělo.",
        f"V čele ministerstva stojí {minister}.", news[0]), _MINISTRY_MENU)  # fmt: skip
    limit = "třiceti dnů" if day < DEADLINE_DAY else "patnácti dnů"
    yield _page(MINISTRY, "/zadosti", "cs", "Jak podat žádost", _paragraphs(
        f"Žádost je třeba doplnit do {limit} od doručení výzvy, jinak ji úřad odloží.",
        "Žádost se podává na podatelně, poštou nebo datovou schránkou. Správní poplatek činí "
        f"{200 if day < 200 else 300} korun.",
        "Proti rozhodnutí lze podat odvolání, o kterém rozhoduje ministr."), _MINISTRY_MENU)  # fmt: skip
    items = "".join(f"<li>{escape(text)}</li>" for text in news)
    yield _page(MINISTRY, "/aktuality", "cs", "Aktuality", [f"<ul>{items}</ul>"], _MINISTRY_MENU)
    yield _page(MINISTRY, "/dotace", "cs", "Dotace", _paragraphs(
        f"V tomto kole je připraveno {4 + day // 122} milionů korun na digitalizaci sbírek.",
        "Podrobné podmínky najdete v příloze; dotazy zodpoví odbor archivů."), _MINISTRY_MENU)  # fmt: skip
    yield _page(MINISTRY, "/kontakty", "cs", "Kontakty", _paragraphs(
        f"Ministerstvo paměti, Dlouhá {14 if day < 300 else 22}, Letohrad.",
        "Podatelna je otevřena od osmi do šestnácti hodin.",
        f"Ministr: {minister}."), _MINISTRY_MENU)  # fmt: skip


# The newspaper

_WHO = (
    "Городская администрация сообщила", "Пресс-служба музея сообщила", "Краевая библиотека сообщила",
    "Дирекция театра сообщила", "Служба погоды сообщила", "Железная дорога сообщила",
)  # fmt: skip
_WHAT = (
    ("Мост через реку откроют весной", "что новый мост через реку откроют для движения весной"),
    ("В музее нашли старинную карту", "что в запасниках нашли карту города, которой больше двухсот лет"),
    ("Библиотека продлит часы работы", "что читальный зал будет работать до девяти часов вечера"),
    ("Театр открывает сезон", "что новый сезон откроется пьесой местного автора"),
    ("Ожидается тёплая неделя", "что до конца недели будет тепло и сухо"),
    ("Поезда пойдут чаще", "что утренние поезда пойдут каждые двадцать минут"),
    ("Школьники посадили сад", "что школьники посадили сто яблонь на берегу пруда"),
    ("На площади обновят фонтан", "что фонтан на главной площади обновят к празднику"),
)
_MORE = (
    "Жители встретили новость с интересом.", "Подробности обещают рассказать на следующей неделе.",
    "Работы оплатят из городского бюджета.", "Редакция будет следить за событиями.",
    "Предыдущее решение было принято пять лет назад.", "Вопросы можно задать по телефону редакции.",
)  # fmt: skip
_NEWS_MENU = _menu({"/": "Главная", "/o-gazete": "О газете"})


def _article(seed: int, week: int) -> tuple[str, str]:
    chance = Random(f"{seed}n{week}")
    title, what = _WHAT[(week + chance.randrange(2) * 3) % len(_WHAT)]
    return title, f"{chance.choice(_WHO)}, {what}. {' '.join(chance.sample(_MORE, 3))}"


def _news(seed: int, day: int) -> Iterator[StoryPage]:
    weeks = range(day // 7, -1, -1)
    rows = [f"<li>{_link(f'/statya-{week}', _article(seed, week)[0])}</li>" for week in list(weeks)[:10]]
    lead = _article(seed, weeks[0])[1]
    weather = Random(f"{seed}w{day}").choice(("ясно", "пасмурно", "дождь", "туман"))
    yield _page(NEWS, "/", "ru", "Городские новости", [
        *_paragraphs(lead), f"<ul>{''.join(rows)}</ul>", f'<p class="weather">Погода сегодня: {weather}.</p>',
    ], _NEWS_MENU)  # fmt: skip
    for week in list(weeks)[:8]:  # older ones do not change any more
        title, text = _article(seed, week)
        fixed = "Исправлено: в первой редакции было неверно указано время." if week % 5 == 2 and day % 7 >= 3 else ""
        yield _page(NEWS, f"/statya-{week}", "ru", title, _paragraphs(text, *filter(None, [fixed])), _NEWS_MENU)
    yield _page(NEWS, "/o-gazete", "ru", "О газете", _paragraphs(
        "Газета выходит каждую неделю. Все имена и события на этих страницах вымышлены.",
        f"Главный редактор: {'Анна Белова' if day < 220 else 'Иван Соколов'}."), _NEWS_MENU)  # fmt: skip


# The university

_COURSES = (
    ("algoritmy", "Algoritmy a datové struktury", "Novotný"), ("databaze", "Databázové systémy", "Dvořáková"),
    ("archivy", "Digitální archivy", "Procházka"), ("statistika", "Statistika", "Kučerová"),
)  # fmt: skip
_UNIVERSITY_MENU = _menu({"/": "Úvod", "/predmety/": "Předměty", "/prijimaci-rizeni": "Přijímací řízení"})


def _university(seed: int, day: int) -> Iterator[StoryPage]:
    term = "zimní" if day < 30 or day >= 250 else "letní"
    yield _page(UNIVERSITY, "/", "cs", "Univerzita v Letohradě", _paragraphs(
        f"Probíhá {term} semestr. Zkouškové období začíná dva týdny po konci výuky.",
        "Univerzita má tři fakulty a knihovnu, která je otevřena i v sobotu."), _UNIVERSITY_MENU)  # fmt: skip
    rows = "".join(f"<li>{_link(_course_path(name, day), title)}</li>" for name, title, _ in _COURSES)
    yield _page(UNIVERSITY, "/predmety/", "cs", "Předměty", [f"<ul>{rows}</ul>"], _UNIVERSITY_MENU)
    for name, title, teacher in _COURSES:
        room = Random(f"{seed}{name}{day // 120}").choice(("A12", "B3", "C105", "D7"))
        page = _page(UNIVERSITY, _course_path(name, day), "cs", title, _paragraphs(
            f"Přednáší {teacher}, vždy v úterý od deseti hodin v učebně {room}.",
            "Předmět končí písemnou zkouškou; zápočet se uděluje za semestrální práci.",
            f"Kapacita předmětu je {40 + 5 * (day // 150)} studentů."), _UNIVERSITY_MENU)  # fmt: skip
        yield page
        if name == "archivy" and day >= MOVED_DAY:
            yield StoryPage(f"http://{UNIVERSITY}/predmety/{name}", 301, location=_course_path(name, day))
    date = "28. února" if day < 60 else "15. března"
    yield _page(UNIVERSITY, "/prijimaci-rizeni", "cs", "Přijímací řízení", _paragraphs(
        f"Přihlášky se podávají do {date}. Přijímací zkouška se skládá z testu a rozhovoru."),
        _UNIVERSITY_MENU)  # fmt: skip


def _course_path(name: str, day: int) -> str:
    return f"/studium/{name}" if name == "archivy" and day >= MOVED_DAY else f"/predmety/{name}"


# The wiki

_ARTICLES = {
    "Lantern_Bridge": (
        "Lantern Bridge", "Lantern Bridge is a stone bridge of seven arches in the old town.",
        "It was finished in 1742, after the third flood of that century.",
        "Its lamps are lit by hand on the last evening of the year.",
        "Two arches were rebuilt in 1901 with stone from the same quarry.",
        "The bridge has been closed to cars since 1978.",
        "A plan to widen it was given up after a vote of the town.",
    ),
    "Web_archive": (
        "Web archive", "A web archive keeps pages of the web as they were at known times.",
        "It stores what servers sent, together with the time and the headers of the answer.",
        "Readers ask for a page as of a date, and see what changed between two dates.",
        "Copies that are the same are stored once.",
        "Large archives are kept by national libraries.",
    ),
    "Lime_honey": (
        "Lime honey", "Lime honey is made by bees from the flowers of lime trees.",
        "It is pale when it is fresh and becomes solid within some months.",
        "In the old town it is sold at the market in August.",
    ),
}  # fmt: skip
_WIKI_MENU = _menu({"/": "Main page", **{f"/wiki/{name}": lines[0] for name, lines in _ARTICLES.items()}})


def _wiki(seed: int, day: int) -> Iterator[StoryPage]:
    links = "".join(f"<li>{_link(f'/wiki/{name}', lines[0])}</li>" for name, lines in _ARTICLES.items())
    yield _page(WIKI, "/", "en", "A small wiki", [
        *_paragraphs("Everybody may write here. Every sentence should name its source."), f"<ul>{links}</ul>",
    ], _WIKI_MENU)  # fmt: skip
    for name, (title, *lines) in _ARTICLES.items():
        count = 2 + sum(Random(f"{seed}{name}{at}").randrange(60, 340) <= day for at in range(2, len(lines)))
        text = lines[:count]
        if name == "Lantern_Bridge" and day in QUARREL and (day - QUARREL.start) // 7 % 2 == 0:
            text = [text[0].replace("seven arches", "nine arches"), *text[1:]]
        yield _page(WIKI, f"/wiki/{name}", "en", title, _paragraphs(*text), _WIKI_MENU)


SITES: dict[str, Callable[[int, int], Iterator[StoryPage]]] = {
    SHOP: _shop, MINISTRY: _ministry, NEWS: _news, UNIVERSITY: _university, WIKI: _wiki,
}  # fmt: skip


def story_pages(site: str, seed: int, day: int) -> Iterator[StoryPage]:
    """Every page that a site shows on a day of the year, from 0."""
    return SITES[site](seed, day)
