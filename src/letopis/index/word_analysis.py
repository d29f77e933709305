"""Words near a word, the lifetime of a phrase, and the categories of a site by its key words.

The key words of a page are the base forms that stand on it oftener than on the site as a whole (tf-idf). A category is
a key word; the word that speaks for most of the pages that are still without a category is taken next. A page is then
in the category whose name weighs most among its key words. The same is done once more inside each category. The
distance of two words is the number of words between them and one more.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from letopis.archive.index_facts import VersionLog, gone_since
from letopis.errors import NotFound, UsageError
from letopis.index.page_text import (
    FRAME,
    LINE_LEAD,
    MAX_WORD_LENGTH,
    WORD,
    StoredPage,
    is_solid,
    lowered,
    nfc,
    split_words,
    unmarked,
)
from letopis.index.query_language import FieldFilter, QueryClause, QueryTerm, WordQuery
from letopis.index.word_documents import STATE_NOW
from letopis.index.word_index import WordIndex
from letopis.index.word_queries import QueryBuilder
from letopis.index.word_snapshot import WordSnapshot
from letopis.lazy import Occur, Order, Query
from letopis.model import from_millis
from letopis.tuples import NamedTuple
from letopis.urls import site as site_of

MIN_WORD_LENGTH = 2
"""Words of fewer letters say nothing about nearby words."""

_STOP_WORDS = {
    "en": """a about above after again all also am an and any are as at be because been before being below between both
        but by can could did do does doing down during each few for from further had has have having he her here hers
        him his how i if in into is it its just may me might more most must my no nor not now of off on once only or
        other our out over own same shall she should so some such than that the their them then there these they this
        those through to too under until up upon very was we were what when where which while who whom why will with
        would you your""",
    "cs": """a aby ale ani ano asi až bez bude by být co což či další do ho i ja já jak jako je jeden jeho jej její
        jejich jen jenž ještě ji jiný již k kam kde kdo kdy kdyby když ke ku která který kteří má mezi mít mnoho můj my
        na nad náš ne nebo než nic nový o od on ona oni ono po pod podle pokud pouze právě pro proč proto protože před
        při s se si skoro sám své svůj ta tady tak také takový taky tam tato te tedy ten tento to tobě tohle toto tu
        tuto tvůj ty tyto u už v však vás váš ve velmi více vy vždy z za zda zde ze že""",
    "sk": """a aby aj ak ako ale alebo ani áno asi až bez bol by byť čo či ďalší do ešte ho i iba ja je jeden jeho jej
        ich iný k kam každý kde kto ktorý keď ku len ma má medzi mať môj môže my na nad nám náš ne nie nič o od on ona
        oni ono po pod podľa pokiaľ potom práve pre prečo pred preto pretože pri s sa sám si so svoj ta tak takže tam
        taký ten tento tiež to toto tu tvoj ty tým už v váš veľmi viac vo však vy z za zo že""",
    "de": """aber alle als also am an ander auch auf aus bei bin bis da damit dann das dass dein dem den der des dich
        die dies dieser dir doch du durch ein eine einer er es etwas euer für gegen haben hatte hier hin ich ihr im in
        ist ja jede jeder kann kein können man mein mich mir mit muss nach nicht nichts noch nun nur ob oder ohne sehr
        sein seine sich sie sind so solch soll sondern über um und uns unser unter viel vom von vor war was weil wenn
        werden wie wieder will wir wird wo wurde zu zum zur zwar zwischen""",
    "ru": """а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее
        если есть еще же за здесь и из или им их к как какой ко когда который кто ли либо мне может мой мочь мы на над
        надо наш не него нее нет ни них но ну о об один однако он она они оно от по под при про с сам свой себя со так
        также такой там те то тогда тоже только том тот ты у уже хотя чего чем что чтобы это этот я""",
    "pl": """a aby albo ale ani az aż bardzo bez bo być by był co czy dla do gdy gdyż gdzie go i ich ile im inny ja
        jak jako jaki je jeden jednak jego jej jest jeszcze jeśli już każdy kiedy kto który lub ma mieć mój może mu my
        na nad nam nas nasz nic nie niż o od on ona oni ono oraz po pod podczas poza przed przez przy również są się
        swój ta tak taki także tam te tego ten to tu tutaj twój ty tylko u w we wasz więc wszystko wy z za ze że""",
}
"""Words that say nothing about nearby words, in base forms."""


@lru_cache(maxsize=16)
def stop_words(language: str) -> frozenset[str]:
    """The words of a language that say nothing by themselves; none where they are not known."""
    return frozenset(_STOP_WORDS.get(language, "").split())


class NearbyWord(NamedTuple):
    """A base form, its distance to the word and how often it is near."""

    word: str
    relevance: float


Progress = Callable[[int, int], None]
"""Hears how many pages are done, and of how many."""
_PROGRESS_STEP = 100


def nearby_words(
    index: WordIndex,
    word: str,
    distance: int = 5,
    question: WordQuery | None = None,
    limit: int = 50,
    progress: Progress = lambda done, of: None,
    most_pages: int | None = None,
) -> list[NearbyWord]:
    """The words nearest to a word, over all pages of the question's moment and place; most relevant first.

    Words that say nothing by themselves are left out, but count in distances. With `most_pages` no more than so many
    pages are read, those that fit best. NotFound when none of the pages has the word.
    """
    words = tuple(split_words(nfc(word)))
    if not words or (len(words) > 1 and not all(map(is_solid, words))) or distance < 1:
        raise UsageError("give one word, and a distance of at least 1")
    snapshot = index.snapshot()
    asked = (question or WordQuery())._replace(clauses=(QueryClause((QueryTerm(words, len(words) > 1),)),))
    matcher = QueryBuilder(snapshot, asked)
    targets = frozenset(snapshot.bases_of("".join(words)))
    forms = frozenset({"".join(words), *(form for base in targets for form in snapshot.forms_of(base))})
    sums: defaultdict[str, float] = defaultdict(float)
    pages = 0
    for pages, page in enumerate(_stored_pages(snapshot, matcher.query(asked), progress, most_pages), 1):  # noqa: B007
        _add_page(sums, page, index, forms, targets, distance, words if is_solid(words[0]) else ())
    if not pages:
        narrowed = asked._replace(clauses=()) != WordQuery()
        where, remedy = ("page there and then", "ask about more pages") if narrowed else ("archived page", "crawl more")
        raise NotFound(f"no {where} has the word '{words[0][:70]}'; try another one, or {remedy}")
    found = [NearbyWord(base, round(relevance, 6)) for base, relevance in sums.items()]
    return sorted(found, key=lambda near: (-near.relevance, near.word))[:limit]


def _stored_pages(
    snapshot: WordSnapshot, query: Any, progress: Progress, most: int | None = None
) -> Iterator[StoredPage]:
    found = snapshot.every(query) if most is None else [address for _, address in snapshot.hits(query, most)]
    for done, address in enumerate(found):
        if done % _PROGRESS_STEP == 0:
            progress(done, len(found))
        yield snapshot.stored(address)


def _add_page(
    sums: defaultdict[str, float], page: StoredPage, index: WordIndex, forms: frozenset[str], targets: frozenset[str],
    distance: int, solid: tuple[str, ...],
) -> None:  # fmt: skip
    bases, stops = index.bases().of(page.language), targets | stop_words(page.language)
    text = lowered(page.text)
    there = [form for form in forms if form in text]
    for line in text.split("\n"):
        # Most lines have none of the known forms: they are neither cut into words nor looked up.
        if not any(form in line for form in there):
            continue
        words = [word[:MAX_WORD_LENGTH] for word in WORD.findall(line, LINE_LEAD)]
        if any(map(is_solid, words)):
            words = list(_paired(words, solid))
        if forms.isdisjoint(words):
            continue
        found = [bases[word] for word in words]
        for place, base in enumerate(found):
            if base in targets:
                _add_around(sums, found, place, stops, distance)


def _paired(words: list[str], wanted: tuple[str, ...]) -> Iterator[str]:
    """The words of a line: those that are `wanted` as one, and others without blanks by overlapping pairs."""
    at, size = 0, len(wanted)
    is_wanted = [bool(size) and tuple(words[at : at + size]) == wanted for at in range(len(words) + 1)]
    while at < len(words):
        if is_wanted[at]:
            yield "".join(wanted)
            at += size
            continue
        if not is_solid(words[at]):
            yield words[at]
        elif at + 1 < len(words) and is_solid(words[at + 1]) and not is_wanted[at + 1]:
            yield words[at] + words[at + 1]
        at += 1


def _add_around(
    sums: defaultdict[str, float], bases: list[str], place: int, stops: frozenset[str], distance: int
) -> None:
    low = max(0, place - distance)
    for other, base in enumerate(bases[low : place + distance + 1], low):
        if other != place and base not in stops and len(base) >= MIN_WORD_LENGTH:
            sums[base] += 1.0 / abs(other - place)


@dataclass(frozen=True, slots=True)
class PhraseHistory:
    """The life of a phrase.

    `first` is when a version with it was first captured, `last` when one was last seen. `gone` is when the page that
    had it last was first seen without it, or first answered 404 or 410; None while some page still has it.
    """

    phrase: str
    first: datetime
    first_url: str
    last: datetime
    last_url: str
    gone: datetime | None
    pages: int
    versions: int


_EVER = datetime(9999, 1, 1, tzinfo=UTC)
"""The end of a span of time that leaves nothing out."""
_PHRASE_WORDS = 60
"""Words of a paragraph by which it is looked for."""


def phrase_history(index: WordIndex, phrase: str, *sites: str) -> PhraseHistory:
    """First and last time the words were together on any page, or on any of these sites; NotFound: never."""
    words = tuple(split_words(nfc(phrase)))
    if not words:
        raise UsageError("a phrase needs at least one word")
    snapshot = index.snapshot()
    hosts = [site_of(name) for name in sites]
    everything = WordQuery(limits=tuple(FieldFilter("site", name) for name in hosts), until=_EVER)
    query = QueryBuilder(snapshot, everything).term(QueryTerm(words, exact=True))
    if hosts:
        query = _both(query, Query.term_set_query(snapshot.schema, "site", hosts))
    addresses = snapshot.every(query)
    if not addresses:
        where = f" on {' or '.join(hosts)}" if hosts else ""
        raise NotFound(f"no version{where} has {_as_asked(words)}")
    first = _first_by(snapshot, query, "time", Order.Asc)
    last, seen, gone = _last_seen(index, snapshot, query)
    pages = len(set(snapshot.numbers("resource", addresses)))
    return PhraseHistory(
        " ".join(words), from_millis(snapshot.numbers("time", [first])[0]), snapshot.stored(first).url,
        from_millis(seen), snapshot.stored(last).url, gone, pages, snapshot.versions(addresses),
    )  # fmt: skip


def _as_asked(words: tuple[str, ...]) -> str:
    if len(words) == 1:
        return f"the word '{words[0]}' in just this form; a search finds all forms of a word"
    return f"the words '{' '.join(words)}' together; search for one of them"


class FirstPlace(NamedTuple):
    """Where and when words first stood together."""

    url: str
    time: datetime


def first_places(index: WordIndex, texts: Iterable[str]) -> Iterator[FirstPlace | None]:
    """Where each text first stood on any page, by its first words in their order; None where it never did."""
    snapshot = index.snapshot()
    for text in texts:
        words = tuple(split_words(nfc(text)))[:_PHRASE_WORDS]
        query = QueryBuilder(snapshot, earliest=True).term(QueryTerm(words, exact=True)) if words else None
        if query is None or not snapshot.every(query):
            yield None
            continue
        first = _first_by(snapshot, query, "time", Order.Asc)
        yield FirstPlace(snapshot.stored(first).url, from_millis(snapshot.numbers("time", [first])[0]))


def _both(first: Any, second: Any) -> Any:
    return Query.boolean_query([(Occur.Must, first), (Occur.Must, second)])


def _first_by(snapshot: WordSnapshot, query: Any, field: str, order: Any) -> Any:
    return snapshot.searcher.search(query, 1, count=False, order_by_field=field, order=order).hits[0][1]


class _Seen(NamedTuple):
    """A document with a phrase: when it was last seen there, which one, and when its version was captured."""

    seen: int
    address: Any
    newest: int


def _last_seen(index: WordIndex, snapshot: WordSnapshot, query: Any) -> tuple[Any, int, datetime | None]:
    """The document that was seen last, when, and by when it was gone: its text, or the page itself (404, 410)."""
    current = Query.term_query(snapshot.schema, "state", STATE_NOW, "basic")
    standing = _latest_first(index, snapshot, snapshot.every(_both(query, current)))
    last, gone = None, None
    for page in standing:
        url = snapshot.stored(page.address).url
        since = gone_since(index.archive, {url: from_millis(page.newest)}).get(url)
        if since is None:
            return page.address, page.seen, None
        if last is None or gone is None or (page.seen, since) > (last.seen, gone):
            last, gone = page, since
    replaced = Query.boolean_query([(Occur.Must, query), (Occur.MustNot, current)])
    hits = snapshot.searcher.search(replaced, 1, count=False, order_by_field="until", order=Order.Desc).hits
    for _, address in hits:
        ended = _latest_first(index, snapshot, [address])[0]
        if last is None or ended.seen > last.seen:
            last, gone = ended, from_millis(snapshot.numbers("until", [address])[0])
    if last is None:
        raise NotFound("no version has these words")
    return last.address, last.seen, gone


def _latest_first(index: WordIndex, snapshot: WordSnapshot, found: list[Any]) -> list[_Seen]:
    """Documents in the order in which they were last seen, the latest first."""
    pages, *columns = (snapshot.numbers(name, found) for name in ("resource", "number", "newest"))
    checks = VersionLog(index.archive).last_seen(pages)
    seen = [
        _Seen(checks.get((page, number), newest), address, newest)
        for address, page, number, newest in zip(found, pages, *columns, strict=True)
    ]
    return sorted(seen, key=lambda page: -page.seen)


MAX_KEYWORDS = 12
"""Key words of one page."""
MIN_CATEGORY_PAGES = 2
"""Pages that make a category."""
_MAX_KEYWORD_SHARE = 0.6
_FRAME_SHARE = 0.3
_MIN_KEYWORD_LENGTH = 3
_MAX_CATEGORIES = 12
OTHER_CATEGORY = ""
"""The name of the rest, which no key word joins."""


@dataclass(frozen=True, slots=True)
class PageCategory:
    """Pages joined by a key word; `words` are the further ones that most of them share, the strongest first."""

    name: str
    words: tuple[str, ...]
    pages: tuple[str, ...]
    children: tuple[PageCategory, ...] = ()


def site_categories(
    index: WordIndex, site: str, at: datetime | None = None, depth: int = 2, progress: Progress = lambda done, of: None
) -> list[PageCategory]:
    """The category tree of a site as of a moment, largest first; NotFound when it has no pages with words."""
    snapshot = index.snapshot()
    question = WordQuery(limits=(FieldFilter("site", site_of(site)),), at=at)
    pages = sorted(_stored_pages(snapshot, QueryBuilder(snapshot, question).query(question), progress))
    weights = _keyword_weights(index, pages)
    if not weights:
        raise NotFound(f"no page of {site_of(site)} had words then; crawl it first, or ask for another date")
    return _split_pages(weights, depth)


KeywordWeights = Mapping[str, Mapping[str, float]]
"""Key words with their weights by URL."""


def _keyword_weights(index: WordIndex, pages: list[StoredPage]) -> KeywordWeights:
    frame = _frame_lines(pages)
    counts = {page.url: _word_counts(index, page, frame) for page in pages}
    counts = {url: counted for url, counted in counts.items() if counted}
    found_on = Counter(word for counted in counts.values() for word in counted)
    return {url: _key_words(counted, found_on, len(counts)) for url, counted in counts.items()}


def _frame_lines(pages: list[StoredPage]) -> frozenset[str]:
    """Lines that are on many pages: menus, footers."""
    seen = Counter(line for page in pages for line in set(page.text.split("\n")))
    return frozenset(line for line, count in seen.items() if count > max(2, _FRAME_SHARE * len(pages)))


def _word_counts(index: WordIndex, page: StoredPage, frame: frozenset[str]) -> Counter[str]:
    bases = index.bases().of(page.language)
    lines = [line[LINE_LEAD:] for line in page.text.split("\n") if line not in frame and line[1:LINE_LEAD] != FRAME]
    words, stops = (bases[word] for line in lines for word in split_words(line)), stop_words(page.language)
    return Counter(
        word for word in words if len(word) >= _MIN_KEYWORD_LENGTH and unmarked(word).isalpha() and word not in stops
    )


def _key_words(counted: Counter[str], found_on: Counter[str], pages: int) -> dict[str, float]:
    """The strongest words of a page; those of one page alone or of nearly all join nothing."""
    useful = {
        word: count
        for word, count in counted.items()
        if MIN_CATEGORY_PAGES <= found_on[word] <= max(MIN_CATEGORY_PAGES, _MAX_KEYWORD_SHARE * pages)
    }
    weighed = {word: (1 + math.log(count)) * math.log(1 + pages / found_on[word]) for word, count in useful.items()}
    strongest = sorted(weighed.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_KEYWORDS]
    return dict(strongest)


def _split_pages(weights: KeywordWeights, depth: int, taken: frozenset[str] = frozenset()) -> list[PageCategory]:
    left = dict(weights)
    names: list[str] = []
    while len(names) < _MAX_CATEGORIES and (name := _strongest(left, taken)):
        names.append(name)
        left = {url: words for url, words in left.items() if name not in words}
    groups: dict[str, dict[str, Mapping[str, float]]] = {name: {} for name in names}
    for url, words in weights.items():
        if url not in left:
            groups[max(names, key=lambda name: words.get(name, 0.0))][url] = words
    found = [_category(name, members, depth, taken | {name}) for name, members in groups.items() if members]
    found.sort(key=lambda category: (-len(category.pages), category.name))
    if left:
        found.append(PageCategory(OTHER_CATEGORY, (), tuple(sorted(left))))
    return found


def _strongest(weights: KeywordWeights, taken: frozenset[str]) -> str:
    """The word that speaks for most pages; nothing when no word joins enough of them."""
    sums: Counter[str] = Counter()
    pages: Counter[str] = Counter()
    for words in weights.values():
        for word, weight in words.items():
            if word not in taken:
                sums[word] += weight  # type: ignore[assignment]
                pages[word] += 1
    joining = [word for word, count in pages.items() if count >= MIN_CATEGORY_PAGES]
    return min(joining, key=lambda word: (-round(sums[word], 9), word), default="")


def _category(name: str, members: KeywordWeights, depth: int, taken: frozenset[str]) -> PageCategory:
    shared = Counter(word for words in members.values() for word in words if word not in taken)
    words = sorted((-count, word) for word, count in shared.items() if count >= MIN_CATEGORY_PAGES)[:5]
    children = _split_pages(members, depth - 1, taken) if depth > 1 and len(members) > 2 * MIN_CATEGORY_PAGES else []
    if all(child.name == OTHER_CATEGORY for child in children):
        children = []
    return PageCategory(name, tuple(word for _, word in words), tuple(sorted(members)), tuple(children))


def category_lines(category: PageCategory, level: int = 0) -> Iterator[str]:
    """A category and what is in it, one line each, for people."""
    indent = "  " * level
    words = f" ({', '.join(category.words)})" if category.words else ""
    count = len(category.pages)
    yield f"{indent}{category.name or 'other'}: {count} page{'s' * (count != 1)}{words}"
    for child in category.children:
        yield from category_lines(child, level + 1)
    if not category.children:
        yield from (f"{indent}  {url}" for url in category.pages)
