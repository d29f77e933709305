"""A page as numbers: normal forms of its text for comparison, and one hash, length and kind per block.

`fingerprint` is called for every fetched page, so it makes one pass over the joined text in C and computes per block
only what it must.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from math import sqrt
from unicodedata import category, normalize

from xxhash import xxh3_64_intdigest

from letopis.lazy import lazy_pattern
from letopis.model import Block, BlockKind, Page
from letopis.model.page import TableCells

_LOWER = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")
_PUNCTUATION = bytes(set(range(128)) - set(b"\n0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
_WIDE = (
    (b"\xe2", re.compile(rb"\xe2[\x80\x81][\x80-\xbf]")),  # general punctuation: dashes, quotes, dots, narrow blanks
    (
        b"\xc2",
        re.compile(rb"\xc2[\x80-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf]"),
    ),  # no-break blanks and the marks of Latin-1
)
_NOT_WORD = re.compile(r"[\W_]+")
_MARKED = lazy_pattern(r"[\u0300-\u1fff\u20d0-\u20ff\u302a-\u309a\ua66f-\uabee]")
"""Scripts whose letters may bear marks."""
_SOLID = lazy_pattern(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts that write words without blanks between them."""


_MARK = lazy_pattern(r"[✓✔☑✅✗✘☒❌❎☐★⭐☆]|[▲△↑⬆▼▽↓⬇](?=\s?\d)")
_PLAIN_MARKS = str.maketrans("✔☑✅✘☒❌❎⭐△↑⬆▽↓⬇", "✓✓✓✗✗✗✗★▲▲▲▼▼▼")


def marks_in(text: str) -> str:
    """Ticks, crosses, stars and the arrows before numbers, each in one form: they say yes, no and how much."""
    return "".join(_MARK.findall(text)).translate(_PLAIN_MARKS)


def letters_only(text: str) -> bytes:
    """Letters and digits alone in lower case, lines kept: what block hashes are made of.

    Blanks go too: it is the quickest form that no reflow of a page can change. Case is folded for ASCII only; what
    differs in the case of other letters alone is found equal later, by `without_clocks`.
    """
    data = text.encode("utf-8", "surrogatepass").translate(_LOWER, _PUNCTUATION)
    for lead, marks in _WIDE:
        if lead in data:
            data = marks.sub(b"", data)
    return data


def normalized_words(text: str) -> str:
    """Lower case, only letters and digits, single blanks: the document's normal form of a paragraph.

    Marks that belong to a letter stay: in many scripts they are its vowel or its tone, and make another word of it.
    """
    lowered = normalize("NFC", text.lower())
    return (_not_word() if _MARKED.search(lowered) else _NOT_WORD).sub(" ", lowered).strip()


@cache
def _not_word() -> re.Pattern[str]:
    """Whatever is neither a letter, a digit nor a mark of a letter, which the module `re` takes for a blank."""
    reach = (range(0x300, 0x2000), range(0x20D0, 0x2100), range(0x302A, 0x309B), range(0xA66F, 0xABEE))
    marks = "".join([chr(n) for part in reach for n in part if category(chr(n))[0] == "M"])
    return re.compile(rf"(?:[^\w{marks}]|_)+")


def words_in(text: str) -> int:
    """How many words a text has; where none are parted by blanks, two letters count as one."""
    form = normalized_words(text)
    return len(form.split()) + len(_SOLID.findall(form)) // 2


_WITH_DIGITS = re.compile(r"\w*\d\w*")
_MOST_BRIEF = 200


def plain_words(text: str) -> frozenset[str]:
    """The words at the beginning of a text that have no digit: any other may be one that a machine made."""
    return frozenset(normalized_words(_WITH_DIGITS.sub(" ", text[:_MOST_BRIEF])).split())


_MONTHS = (
    r"jan(?:uary|uar|vier|uari)?|feb(?:ruary|ruar|ruari)?|f[ée]vrier|m[aä]r(?:ch|z|s)?|apr(?:il)?|avril|abril|"
    r"may|mai|mayo|june?|juin|junio|july?|juillet|julio|aug(?:ust)?|ao[uû]t|agosto|sept?(?:ember|iembre)?|"
    r"o[ck]t(?:ober|obre|ubre)?|nov(?:ember|iembre|embre)?|de[cz](?:ember|iembre)?|d[ée]cembre|enero|febrero|marzo|"
    r"leden|ledna|února?|březen|března|duben|dubna|květen|května|červen|června|červenec|července|srpen|srpna|"
    r"září|říjen|října|listopadu?|prosinec|prosince|"
    r"januára?|februára?|marca|apríla?|mája?|júna?|júla?|augusta?|septembra|októbra?|novembra|decembra|"
    r"января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря"
)
_DAYS = (
    r"mon(?:day|tag)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?|"
    r"dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|"
    r"pondělí|úterý|středa|čtvrtek|pátek|sobota|neděle"
)
_UNITS = (
    r"s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?|"
    r"sekunden?|minuten?|stunden?|tage?n?|wochen?|monate?n?|jahre?n?|"
    r"secondes?|heures?|jours?|semaines?|mois|ans?|segundos?|minutos?|horas?|d[ií]as?|semanas?|mes(?:es)?|años?|anos?|"
    r"second[oi]|minut[oi]|or[ae]|giorn[oi]|settiman[ae]|mes[ei]|ann[oi]|secondes?|minuten|uur|uren|dag(?:en)?|weken|"
    r"sekund\w*|minut\w*|hodin\w*|d(?:en|ny|ní|nem|ňami)|týdn\w*|týžd\w*|měsíc\w*|mesiac\w*|"
    r"godzin\w*|dni|dzień|tygod\w*|miesi\w*|timm\w+|timer?|dagar|dager?|dage|tuntia?|päivää?|perc\w*|ór[aá]\w*|nap\w*|"
    r"dakika|saat|gün|ore|oră|zile|sati?|dana?|"
    r"секунд\w*|минут\w*|хвилин\w*|час\w*|годин\w*|дн\w*|день|дни|недел\w*|тиж\w*|месяц\w*"
)
_AGO = r"ago|назад|тому|преди|geleden|temu|sedan|siden|sitten|fa|atrás|önce|ezelőtt|în urmă"
_BEFORE = r"vor|před|pred|il y a|hace|há|acum|пре|преди|prije|pre"
_COUNTED = (
    r"views?|visits?|visitors?|hits?|reads?|readers?|online|guests?|members? online|users? online|"
    r"likes?|shares?(?!\s(?:of|price)\b)|followers?|subscribers?|comments?|replies|reactions?|retweets?|upvotes?|downloads?|"
    r"aufrufe|besuche?r?|kommentare?|abonnenten|zugriffe|leser|vues|visites|visiteurs|commentaires?|abonnés|"
    r"téléchargements?|vistas|visitas|visitantes|comentarios?|descargas|seguidores|suscriptores|visualizações|"
    r"comentários?|downloads|visualizzazioni|visite|visitatori|commenti?|scaricamenti|iscritti|"
    r"weergaven|bezoekers|reacties|bezoeken|zobrazen\w*|přečten\w*|návštěv\w*|komentář\w*|s?hlédnut\w*|zhlédnut\w*|"
    r"prohlédnut\w*|sdílen\w*|stažen\w*|sledujíc\w*|zobrazení|návštev\w*|komentár\w*|zdieľan\w*|stiahnut\w*|"
    r"wyświetle\w*|odsłon\w*|odwiedzin\w*|komentarz\w*|pobra[ńn]\w*|udostępnie\w*|visningar|besökare|kommentarer|"
    r"nedladdningar|visninger|besøgende|besøkende|katselu\w*|kävijä\w*|kommentti\w*|lataus\w*|megtekintés\w*|látogató\w*|"
    r"hozzászólás\w*|letöltés\w*|vizualizări|vizitatori|comentarii|descărcări|görüntüle\w*|ziyaretçi\w*|yorum|indirme|"
    r"pregleda?|posjet\w*|poset\w*|komentara?|преглед\w*|посет\w*|коментар\w*|перегляд\w*|відвідувач\w*|завантажен\w*|"
    r"просмотр\w*|посетител\w*|комментари\w*|скачиван\w*|подписчик\w*"
)
_ALL_TIME = "total|today|celkem|celkom|dnes|gesamt|insgesamt|heute|au total|en total|ogółem|dziś|всего|сегодня"
_COUNTED_SOLID = r"閲覧|回視聴|件のコメント|浏览|阅读|评论|下载|瀏覽|閱讀|조회|댓글|مشاهد\w*|تعليق\w*"
_SUFFERED = (
    r"dead|die[ds]?|killed|injured|hurt|missing|wounded|infected|arrested|tote?|getötet|verletzt\w*|vermisst\w*|mort\w*|"
    r"tué\w*|bless\w*|muert\w*|herid\w*|mort[ie]|ferit[ie]|mrtv\w*|zraněn\w*|pohřešovan\w*|zabit\w*|ofiar\w*|rann\w*|"
    r"погиб\w*|ранен\w*|загинул\w*|zemřel\w*"
)
"""What befalls people makes news of their number."""
# Every repeat has a bound: these patterns meet hostile texts.
_NUMBER = r"\d[\d., \u00a0\u202f]{0,14}+[km]?+"
_CLOCK = (
    r"(?:(?:[01]?\d|2[0-4]):[0-5]\d(?::\d\d)?(?:[.,]\d{1,9})?\s?(?:[ap]\.?m\b\.?|uhr\b|hod\b)?"
    r"|\d{1,2}[.]\d\d\s?(?:[ap]m\b|uhr\b|hod\b))"
)
_NO_SPAN = r"(?!\s?[-–—]\s?\d{1,2}[:.]\d\d)"  # opening hours do not tick
_ZONE = r"(?:\s?(?:z\b|utc|gmt|ce?s?t\b|[ecmp][sd]t\b|[+-]\d{2}:?\d{2}))?"
_YEAR = r"(?:19|20)\d\d"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_TOOK_NEAR = lazy_pattern(r"generated|rendered|took|loaded|executed|queries|vygenerov|načten|erzeugt|generiert|сгенер")
_HAS_DIGIT = re.compile(r"\d")
_KEY_LABEL = lazy_pattern(
    r"(?:sha-?\d{0,3}(?:-\d{3})?|md5|blake2\w?|checksum|digest|fingerprint|otisk\w*|součet|prüfsumme|password|passwor[dt]|"
    r"heslo|key|klíč|schlüssel|ключ|пароль|schránk\w*|\bsn|serial|výrobní číslo|account|účet|iban|konto)"
    r"(?:\s\w{1,15}){0,2}[^\w]{1,4}$"
)
"""What an identifier is called that people copy; any other is one of the visit."""
_LONGEST_KEY_LABEL = 30
_TIME = re.compile(r"\s*\d{1,2}[:.]\d\d")
_LEGAL = re.compile(r"\W{0,4}(?:©|\(c\)|copyright\b)\D{0,12}(?:19|20)\d\d(?:\s?[-–—,]\s?(?:19|20)\d\d){0,4}")
"""The mark and the years that a notice of copyright begins with."""
_PARTS = re.compile(r"(?<=[^\W_]{2}[.!?])\s+|[:;|•·]")
_MOST_OWNER = 6
_LEGAL_WORDS = lazy_pattern(
    r"rights? reserved|alle rechten?\b|rechte vorbehalten|tous droits|todos (?:los derechos|os direitos)|tutti i dir|"
    r"vš\w{4,5} práva|prawa zastrze|alla rättigheter|alle rettigheder|minden jog|drepturile|hakları|(?:все|усі) права|"
    r"trademark|(?:waren|registered )mar[kc]|marque|logo|licen[sc]|lizenz|terms|privacy|cookie|imprint|impressum|"
    r"powered|designed|hosted|disclaimer|datenschutz"
)
_VERSION_OR_MAIL = lazy_pattern(
    r"v?\d{1,4}(?:\.\d{1,4}){1,3}(?:[-.]?(?:alpha|beta|rc|dev)[-.]?\d{0,3})?|"
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"
)
_OF_THE_PAGE = lazy_pattern(
    r"updat|modif|generat|retriev|aktuali|stand\b|today|dnes|heute|aujourd|hoy\b|обновл|сегодня|publish|posted|"
    r"veröffentl|publi|zveřej|vydán|written|draft|version|edited|created|last|as of|by\b|snapshot|revis|issued|"
    r"date:|datum(?!\s+[^\W\d])"
)
"""What a date beside few other words is of the page itself; any other date is what these words say."""
_OF_AN_EVENT = lazy_pattern(
    r"deadline|\b(?:dtstart|dtend|due|until|till|expir|valid|effective|begin|start|end|open|clos|launch|exam|election|"
    r"concert|meeting|"
    r"leav|depart|arriv|trial|hearing|kick-?off|show|train|bus|flight|uzávěrk|termín|konec|začát|začín|zkoušk|"
    r"koná|volb|"
    r"přihláš|odjezd|odjíždí|příjezd|odlet|přílet|otevř|zavír|vlak|platnost|platí|frist|beginn|abfahrt|ankunft|"
    r"prüfung|wahl|"
    r"releas|deliver|dispatch|shipping|ships|arrives|respond|reply by|return by|submi|payment|payable|pick-?up|"
    r"appointment|collection|last (?:day|order|call|chance|admission)|next (?!updat|refresh|page|post)|availab|renew|"
    r"premi[eè]r|dodán|doruč|splatn|vrácen|odevzd|podání|svoz|odečet|zápas|liefer|abgabe|fällig|abholung|livraison|paiement|"
    r"entrega|pago|gültig|schluss|départ|arrivée|limite|échéance|salida|llegada|plazo|límite|срок|начало|отправл|прибыт)"
)
"""What makes a time of day or a bare date that of an event, which does not tick."""
_DATE_NAMES = frozenset(("", "date", "datum", "fecha", "data", "дата", "time", "day", "now", "modified"))
_MOST_READ = 2048
_LEGAL_LINE = 400
_LONGEST_VERSION_OR_MAIL = 100
_FEW_WORDS = 6
_FEW_BESIDE = 5


@cache  # made at first use: these patterns take longer to make than a page to read
def _clocks() -> re.Pattern[str]:
    """What is stilled everywhere."""
    return re.compile(
        "|".join(
            (
                rf"(?P<stamp>\b(?:19|20)\d\d-?\d\d-?\d\d[t ]\d\d:?\d\d(?::?\d\d)?(?:\.\d{{1,9}})?{_ZONE})",
                r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])(?:\d{6})?(?!\d)",
                rf"(?<![\d.:])(?<![-–—])(?<![-–—]\s){_CLOCK}(?![\d:]){_NO_SPAN}{_ZONE}",
                rf"\b(?:\d{{1,4}}|an?|one)\s?(?:{_UNITS})\s(?:{_AGO})\b|\bjust now\b",
                r"\d{1,4}\s(?:perce|órája|napja|hete)\b|\d{1,4}\s?(?:秒|分|分钟|時間|小时|日|天|분|시간|일)\s?[前전]",
                rf"\b(?:{_BEFORE})\s(?:\d{{1,4}}\s?)?(?:{_UNITS})\b",
                rf"(?P<measured>(?<![\d.,]){_NUMBER}\s?(?:{_COUNTED})\b(?!\s(?:{_SUFFERED})\b)"
                rf"|\b(?:{_COUNTED})(?:\s(?:{_ALL_TIME}))?\s?(?:[:(]\s?{_NUMBER}|{_NUMBER}(?!\s?(?!(?:{_COUNTED})\b)[^\W\d_]))"
                r"|-?\d{1,3}(?:[.,]\d)?\s?°\s?(?:[cf]\b)?)",
                r"(?P<took>(?<![\d.,])\d{1,9}(?:[.,]\d{1,9})?\s?(?:ms|msec|milliseconds|s|sec|seconds|sekund\w*)\b)",
                r"(?:©|\(c\)|copyright)\D{0,12}(?:\d{4}\s?[-–—]\s?)?\d{4}",
                r"(?P<random>\b(?<!\d[.,])(?=[0-9a-f-]{0,40}\d)(?=[0-9a-f-]{0,40}[a-f])[0-9a-f]{8,128}"
                r"(?:-[0-9a-f]{4,12}){0,4}\b)",
            )
        )
    )


@cache
def _counted() -> re.Pattern[str]:
    return re.compile(
        rf"\b(?:{_COUNTED}|viewed|visited|read by|(?:reading|viewing|watching) (?:this|now))\b|{_COUNTED_SOLID}"
    )


@cache
def _told_of() -> re.Pattern[str]:
    """What befell people, and "hits 12 towns"."""
    return re.compile(rf"\b(?:{_SUFFERED})\b|\b(?:{_COUNTED})\s{_NUMBER}(?!\s?(?:{_COUNTED})\b)\s?[^\W\d_]")


@cache
def _dates() -> re.Pattern[str]:
    """What is stilled where it is most of the block."""
    return re.compile(
        rf"(?:\b(?:{_DAYS})\b\.?,?\s+)?(?:"
        rf"\b{_YEAR}[-/.]\d{{1,2}}[-/.]\d{{1,2}}\b|\b\d{{1,2}}\s?[-/.]\s?\d{{1,2}}\s?[-/.]\s?(?:{_YEAR}|\d\d)\b"
        rf"|\b{_DAY}\.?,?\s+(?:{_MONTHS})\b\.?(?:,?\s+{_YEAR}\b)?"
        rf"|\b(?:{_MONTHS})\b\.?(?:\s+{_DAY}\b(?:,?\s+{_YEAR}\b)?|,?\s+{_YEAR}\b))"
    )


def without_clocks(text: str) -> str:
    """The text with clocks, counters and other things that tick taken out; empty when nothing else is there.

    Ages ("3 minutes ago"), counters of views and comments, copyright years, temperatures and random identifiers are
    stilled everywhere. Times of day and dates are stilled only where they are most of the block, since in a sentence
    they are what the sentence says, and not where the few words beside them name an event: a deadline, a departure.
    Prices, versions and other numbers stay. Of a line that begins with a copyright and its year stays what is neither
    its owner nor a right.
    """
    return normalized_words(stilled(text)) + text[_MOST_READ:]


def stilled(text: str) -> str:
    """The beginning of a text in lower case without what ticks, its signs kept; see `without_clocks`."""
    lowered = text[:_MOST_READ].lower()
    if not _HAS_DIGIT.search(lowered):
        return lowered
    if len(text) <= _LEGAL_LINE and (notice := _LEGAL.match(lowered)):
        lowered = _beside_notice(lowered[notice.end() :])
    took = bool(_TOOK_NEAR.search(lowered))
    sentence = lowered.rstrip().endswith((".", "!", "?", "…")) and words_in(lowered) > _FEW_WORDS
    still = _without_dates(_clocks().sub(lambda m: m[0] if _is_said(m, took, sentence) else " ", lowered))
    if len(normalized_words(still).split()) > _FEW_WORDS or names_event(lowered):
        event = names_event(lowered)
        kept = _clocks().sub(
            lambda m: m[0] if _is_said(m, took, sentence) or _TIME.match(m[0]) or (event and m["stamp"]) else " ",
            lowered,
        )
        still = _without_dates(kept)
    return still


def _is_said(found: re.Match[str], took: bool, sentence: bool) -> bool:
    """Whether what looks like a clock is what the text says: a duration, a figure of a sentence, a checksum, a key."""
    match found.lastgroup:
        case "took":
            return not took
        case "measured":
            return sentence
        case "random":
            label = found.string[max(0, found.start() - _LONGEST_KEY_LABEL) : found.start()]
            return _KEY_LABEL.search(label) is not None
    return False


def _beside_notice(text: str) -> str:
    """What follows a mark of copyright and its years, without the few words of an owner and without rights."""
    owner, *parts = _PARTS.split(text)
    said = [owner] if words_in(owner) > _MOST_OWNER else []
    return ". ".join(part for part in (*said, *parts) if not _LEGAL_WORDS.search(part))


def names_event(text: str) -> bool:
    """Whether a text in lower case says that a date or a time is that of an event, and not of the page."""
    return _OF_AN_EVENT.search(text) is not None


def is_date_alone(text: str) -> bool:
    """Whether a text is a date and nothing else, not even a time of day."""
    lowered = text[:_MOST_READ].lower()
    return not _clocks().search(lowered) and not normalized_words(_dates().sub(" ", lowered))


_TIME_ALONE = re.compile(r"\s*\d{1,2}[:.]\d\d\s*")
_TIMETABLE = re.compile(r"\s*(?:\d{1,2}[:.]\d\d[\s,;|]{1,4}){1,200}\d{1,2}[:.]\d\d\s*")
_SPAN_OF_DAYS = re.compile(r"[\d.\s/-]{4,12}\s?[-–—]\s?\d{1,2}\.\s?\d{1,2}\.(?:\s?\d{4})?\s*")


def is_time_alone(text: str) -> bool:
    """Whether a text is a time of day and nothing else, as a row of a timetable tells it."""
    return _TIME_ALONE.fullmatch(text) is not None


def is_timetable(text: str) -> bool:
    """Whether a text is several times of day, or a span of days, and nothing else: these do not tick."""
    return _TIMETABLE.fullmatch(text) is not None or _SPAN_OF_DAYS.fullmatch(text) is not None


def is_label_of_page(label: str) -> bool:
    """Whether a label in lower case says that a date is that of the page itself, or of the day."""
    return _OF_THE_PAGE.search(label) is not None or normalized_words(label) in _DATE_NAMES


def names_counter(text: str) -> bool:
    """Whether a short text says that its number counts looks, people at a page or what they leave there."""
    lowered = text.lower()
    rest = _counted().sub(" ", lowered)
    few = rest != lowered and words_in(_HAS_DIGIT.sub("", rest)) <= _FEW_BESIDE
    return few and not _told_of().search(lowered)


def without_dates(text: str) -> str:
    """The text with clocks, counters and every date taken out, wherever they stand."""
    return normalized_words(_dates().sub(" ", _clocks().sub(" ", text[:_MOST_READ].lower()))) + text[_MOST_READ:]


def is_version_or_mail(text: str) -> bool:
    """Whether a text is a version number or a mail address, which say something even in a menu."""
    return len(text) <= _LONGEST_VERSION_OR_MAIL and _VERSION_OR_MAIL.fullmatch(text.strip().lower()) is not None


def _without_dates(text: str) -> str:
    bare = _dates().sub(" ", text)
    words = len(normalized_words(bare).split())
    return bare if not words or (words <= _FEW_WORDS and _OF_THE_PAGE.search(text) and not names_event(text)) else text


_DIGIT_RUNS = re.compile(r"\d+")


def digits_folded(text: str) -> str:
    """The normal form with every number as one mark: equal for "v1.2" and "v1.3"."""
    return _DIGIT_RUNS.sub("0", normalized_words(text))


MAX_BLOCKS = 50_000


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is needed of a page to compare it.

    `blocks` contains the texts while they are available; equality ignores them. Blocks without
    letters, digits and marks are left out; beyond `MAX_BLOCKS` the rest of a page is one block.
    """

    text_hash: int
    hashes: tuple[int, ...]
    lengths: tuple[int, ...]
    kinds: tuple[BlockKind, ...]
    frame: frozenset[int] = frozenset()
    blocks: tuple[Block, ...] = field(default=(), compare=False, repr=False)
    cells: TableCells = field(default=TableCells(), compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.hashes)

    def text(self, index: int) -> str:
        """The text of a block; empty when no texts are at hand."""
        return self.blocks[index].text if self.blocks else ""

    def weight(self, index: int) -> float:
        """Square root of the length: long paragraphs count more, but not all."""
        return _root(self.lengths[index])


@lru_cache(maxsize=4096)
def _root(length: int) -> float:
    return sqrt(length)


def fingerprint(page: Page) -> Fingerprint:
    """The fingerprint of a page, in time linear in its text."""
    blocks = page.blocks if len(page.blocks) <= MAX_BLOCKS else _rest_as_one(page.blocks)
    if not blocks:
        return _EMPTY
    kinds, texts = zip(*blocks, strict=True)
    whole = letters_only("\n".join(texts))
    parts = whole.split(b"\n")
    if len(parts) != len(blocks):
        parts = [letters_only(text).replace(b"\n", b"") for text in texts]
    if not all(parts):
        parts = [part or marks_in(text).encode() for part, text in zip(parts, texts, strict=True)]
        whole = b"\n".join(parts)
    hashes, lengths = tuple(map(xxh3_64_intdigest, parts)), tuple(map(len, parts))
    whole_hash = xxh3_64_intdigest(whole)
    if all(parts):
        frame = page.frame if blocks is page.blocks else frozenset(i for i in page.frame if i < MAX_BLOCKS)
        return Fingerprint(whole_hash, hashes, lengths, kinds, frame, blocks, page.cells)
    kept = [i for i, part in enumerate(parts) if part]
    frame = frozenset(n for n, i in enumerate(kept) if i in page.frame)
    picked, cells = tuple([blocks[i] for i in kept]), page.cells.among(kept)
    hashes, lengths = tuple([hashes[i] for i in kept]), tuple([lengths[i] for i in kept])
    return Fingerprint(whole_hash, hashes, lengths, tuple([block.kind for block in picked]), frame, picked, cells)


_EMPTY = Fingerprint(xxh3_64_intdigest(b""), (), (), ())


def _rest_as_one(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The first blocks as they are and all others as one, so that no page costs without bound."""
    rest = " ".join([block.text for block in blocks[MAX_BLOCKS:]])
    return (*blocks[:MAX_BLOCKS], Block(BlockKind.PARAGRAPH, rest))


LONG_PARAGRAPH = 50


def long_paragraphs(page: Page) -> Iterator[tuple[int, int]]:
    """Hash and length of each paragraph of at least 50 characters in its normal form."""
    for block in page.blocks:
        form = normalized_words(block.text)
        if len(form) >= LONG_PARAGRAPH:
            yield xxh3_64_intdigest(form.encode("utf-8", "surrogatepass")), len(form)


def known_share(page: Page, known: Container[int]) -> float | None:
    """D: length of known long paragraphs by length of all; None when the page has none."""
    whole = familiar = 0
    for block, length in long_paragraphs(page):
        whole += length
        familiar += length if block in known else 0
    return familiar / whole if whole else None


def known_share_of(new: Page, old: Page) -> float | None:
    """D of a page against its own last version alone."""
    return known_share(new, {block for block, _ in long_paragraphs(old)})
