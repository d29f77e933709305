"""Short texts that state amounts or conditions: money, shares, measures, states. They are news however short.

If the tables contain a word too many, a counter becomes news; a word too few hides a price. They lean to the former.
Numbers are read as people write them: `1 299,90`, `1,299.90`, `1'299.90`, `1,23,456`, `-5`, `0,125`, in any digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from letopis.change.cell_moves import CellMoves
from letopis.change.fingerprints import Fingerprint, marks_in, normalized_words, stilled

CURRENCIES = (
    "AED|AFN|ALL|AMD|AOA|ARS|AUD|AWG|AZN|BAM|BBD|BDT|BGN|BHD|BIF|BMD|BND|BOB|BRL|BSD|BTC|BTN|BWP|BYN|BZD|CAD|CDF|CHF|"
    "CLP|CNY|COP|CRC|CUP|CVE|CZK|DJF|DKK|DOP|DZD|EGP|ERN|ETB|ETH|EUR|FJD|GBP|GEL|GHS|GIP|GMD|GNF|GTQ|GYD|HKD|HNL|HTG|"
    "HUF|IDR|ILS|INR|IQD|IRR|ISK|JMD|JOD|JPY|KES|KGS|KHR|KMF|KPW|KRW|KWD|KYD|KZT|LAK|LBP|LKR|LRD|LSL|LYD|MAD|MDL|MGA|"
    "MKD|MMK|MNT|MOP|MRU|MUR|MVR|MWK|MXN|MYR|MZN|NAD|NGN|NIO|NOK|NPR|NZD|OMR|PAB|PEN|PGK|PHP|PKR|PLN|PYG|QAR|RMB|RON|"
    "RSD|RUB|RWF|SAR|SBD|SCR|SDG|SEK|SGD|SLE|SOS|SRD|SSP|STN|SYP|SZL|THB|TJS|TMT|TND|TOP|TRY|TTD|TWD|TZS|UAH|UGX|USD|"
    "UYU|UZS|VED|VES|VND|VUV|WST|XAF|XCD|XOF|XPF|YER|ZAR|ZMW"
)
CURRENCY_SIGNS = "$¢-¥֏؋߾৲৳৻૱௹฿៛₠-⃀﷼﹩＄￠￡￥￦"
_MONEY = re.compile(
    rf"(?<![A-Za-z])(?:{CURRENCIES})(?![A-Za-z])|[{CURRENCY_SIGNS}%‰٪％]|\d,[-–—]"
    r"|(?i:\b(?:eur|usd|gbp|chf|czk|kč|kc|kčs|zł|zl|zlot\w*|ft|forint\w*|kr|kron\w*|korun\w*|haléř\w*|fr|"
    r"francs?|franken|"
    r"euros?|eura|eur|cents?|centów|pence|pounds?|sterling|dollars?|dolar\w*|dollár\w*|yen|yuan|renminbi|"
    r"rupees?|rs|lei|leu|"
    r"лв|лев\w*|грн|гривен\w*|гривн\w*|руб\w*|р|доллар\w*|евро|динар\w*|din|dinar\w*|tl|lira|liras?|peso|pesos|"
    r"reais|real|"
    r"rand|shillings?|dirhams?|riyals?|won|baht|ringgit|rupiah|bitcoins?|satoshis?|basis points?|bps|percent|"
    r"procent\w*|"
    r"prozent|pour cent|por ciento|процент\w*|prices?|preis\w*|prix|precios?|preços?|prezz[io]|prij[sz]\w*|"
    r"cen[aouy]|cijen[aeu]|"
    r"pris|priser|hinta|ár|ára|preț\w*|fiyat\w*|цен[аыуе]|ціна|ціни|rates?|kurs\w*|kurz\w*|fees?|costs?|salary|"
    r"wages?|rent)\b)"
    r"|(?<=\d)\s?p\b|\bS/\s?\d|[元円圆圓원価價价]|値段|가격|السعر|درهم|ريال|मूल्य|रुपये|ราคา|บาท"
)
"""What money, a share or a rate is named by."""
_FRACTION = re.compile(r"(?<![\d.,:])\d{1,9}(?:[.,]\d{1,2}|[.]\d{4,9})(?![\d.,:]*\d)")
_STATES = re.compile(
    r"(?<!\w)(?:yes|no|ano|ne|ja|nein|oui|non|sí|да|нет|tak|nie|open|closed|otevřen[aoéý]?|u?zavřen[aoéý]?|otvorené|"
    r"zatvorené|geöffnet|geschlossen|"
    r"ouvert|fermé|abierto|cerrado|открыт[аоы]?|закрыт[аоы]?|"
    r"(?:v|mimo) provozu?|otwarte|zamknięte|aperto|chiuso|(?:un|not )?available|(?:on|"
    r"off)line|"
    r"up|down|operational|degraded|outage|running|stopped|free|full|volno|obsazeno|frei|belegt|active|inactive|enabled|"
    r"disabled|valid|expired|passed|failed|cancelled|canceled|confirmed|postponed|delayed|zrušeno|potvrzeno|odloženo|"
    r"(?:in|out of|back in) stock|sold out|(?:pre)?order|discontinued|(?:není )?skladem|vyprodáno|"
    r"(?:ne)?dostupné|na sklade|"
    r"vypredané|(?:nicht )?(?:auf lager|vorrätig|lieferbar|verfügbar)|ausverkauft|en stock|épuisé|rupture|"
    r"(?:in)?disponible|"
    r"agotado|(?:non )?disponibile|esaurito|(?:nie)?dostępn[yae]|wyprzedan[yae]|uitverkocht|op voorraad|"
    r"(?:нет )?в наличии|"
    r"(?:za|od)?volán[aoiy]?|povolen[aoéý]?|zakázán[aoéý]?|vyhlášen[aoéý]?|schválen[aoéý]?|zamítnut[aoéý]?|"
    r"přijat[aoéý]?|odmítnut[aoéý]?|zakázan[éáý]|vyhlásen[éáý]|zamietnut[éáý]|pending|approved|rejected|accepted|denied|"
    r"allowed|forbidden|banned|genehmigt|abgelehnt|erlaubt|verboten|разреш[её]н[аоы]?|запрещ[её]н[аоы]?|"
    r"одобрен[аоы]?|отклон[её]н[аоы]?|"
    r"продано|slutsåld|i lager|売り切れ|在庫あり|在庫切れ|有货|缺货|有貨|缺貨)(?!\w)"
)
_LEVELS = re.compile(
    r"(?:very |velmi |sehr |très |muy |molto |bardzo |очень )?"
    r"(?:low|moderate|medium|high|extreme|severe|critical|elevated|"
    r"normal|minor|major|none|green|yellow|amber|orange|red|nízk[ýáé]|mírn[ýáé]|střední|zvýšen[ýáé]|vysok[ýáé]|extrémní|"
    r"kritick[ýáé]|normální|zelen[ýáé]|žlut[ýáé]|oranžov[ýáé]|červen[ýáé]|niedrig|gering|mittel|mäßig|erhöht|hoch|extrem|"
    r"kritisch|grün|gelb|rot|faible|modéré|moyen|élevé|extrême|vert|jaune|rouge|baj[oa]|medi[oa]|moderad[oa]|alt[oa]|"
    r"extrem[oa]|verde|amarill[oa]|naranja|roj[oa]|bass[oa]|elevat[oa]|giall[oa]|arancione|ross[oa]|nisk[ia]|średni[a]?|"
    r"wysok[ia]|низк\w{2,3}|средн\w{2,3}|высок\w{2,3})"
)
"""Steps of a scale, of a danger or a warning."""
_GRADE = re.compile(r"(?<![\w'’.])[A-Z](?![\w'’.])")
_BARE_GRADE = re.compile(r"\W{0,2}[A-F]{1,3}\W{0,2}")
_NEGATED = re.compile(r"(\w{3,}) (?:ne|nie|non|un|in|im|dis|не|ні)[ -]?\1")
"""A word and the same with what denies it before it, as in "passable" and "impassable"."""
_MOST_STATE_WORDS, _LONGEST_STATE, _LONGEST_RESTATED = 4, 60, 300


def is_value(text: str) -> bool:
    """Whether a text names money, a share or a rate, or has a fraction, which nothing that is counted has."""
    return bool(_MONEY.search(text) or _FRACTION.search(text))


_PHONE = re.compile(
    r"(?:(?<![\w.])(?:\+|00|\(0?)|(?:tel|phone|fon|mobile?|call|fax|hotline|тел|電話|电话)\w{0,6}[^\w\n]{1,4}\+?|"
    r"(?<![\w.:-])0(?=\d{1,4}[ /-]))\d(?:[ ()/.\u00a0-]{0,2}\d){5,14}(?![\d.:])",
    re.IGNORECASE,
)


def is_phone(text: str) -> bool:
    """Whether a text has the number of a telephone."""
    return _PHONE.search(text) is not None


def is_state(text: str) -> bool:
    """Whether a text of few words says how it stands: open or closed, in stock or sold out, yes or no, a grade."""
    if len(text) > _LONGEST_STATE:
        return False
    if _BARE_GRADE.fullmatch(text):
        return True
    words = normalized_words(text).split()
    return names_state(text) or (len(words) <= _MOST_STATE_WORDS and _STATES.search(" ".join(words)) is not None)


def names_state(text: str) -> bool:
    """Whether a text is the name of a state or of a step of a scale, or a mark, and nothing else."""
    words = normalized_words(text[: _LONGEST_STATE + 1])
    if not words:
        return bool(marks_in(text))
    return _STATES.fullmatch(words) is not None or _LEVELS.fullmatch(words) is not None


def is_restated(old: str, new: str) -> bool:
    """Whether two texts of a place name another state each: they themselves, or the words alone that differ."""
    if max(len(old), len(new)) > _LONGEST_RESTATED:
        return False
    before, after = normalized_words(old).split(), normalized_words(new).split()
    gone = " ".join(word for word in before if word not in after)
    came = " ".join(word for word in after if word not in before)
    if (names_state(gone) and names_state(came)) or (names_state(old) and names_state(new)):
        return True
    return _NEGATED.fullmatch(f"{gone} {came}") is not None or _NEGATED.fullmatch(f"{came} {gone}") is not None


def is_regraded(old: str, new: str) -> bool:
    """Whether single capitals differ between two texts that have as many of them, as in "rating A" and "rating C"."""
    before, after = _GRADE.findall(old), _GRADE.findall(new)
    return before != after and len(before) == len(after)


_BLANKS = " \u00a0\u2009\u202f'\u2019\u02bc\u066c"
# Every repeat has a bound, and no number begins inside another: these patterns meet hostile texts.
_GROUPED = rf"\d{{1,3}}([{_BLANKS}.,])\d{{3}}(?:\1\d{{3}}){{0,6}}(?!\d)|\d{{1,2}}(?:,\d\d){{1,6}},\d{{3}}(?!\d)"
_WHOLE = rf"(?<!\d)(?:(?!0{{1,3}}[.,])(?:{_GROUPED})|\d{{1,18}}(?!\d))"
AMOUNT = rf"(?:{_WHOLE}(?:[.,\u066b]\d{{1,18}})?|(?<![\w.,])[.,]\d{{1,18}})"
"""A number; a mark before three digits parts thousands, unless nothing but 0 stands before it. Has one group."""
_NUMBER = re.compile(rf"((?<![\w.,)\]])(?<!\d\s)[-\u2212\u2013])?({AMOUNT})".replace(r"\1", r"\3"))
_AFTER_MARK = re.compile(r"[.,\u066b](\d+)$")


def first_number(text: str) -> float | None:
    """The first number that people wrote in a text; None where there is none."""
    found = _NUMBER.search(text)
    return None if found is None else _number_of(found)


def _number_of(found: re.Match[str]) -> float:
    sign, amount, mark = found.groups()
    part = _AFTER_MARK.search(amount)
    if part is not None and not _parts_thousands(amount, part, mark):
        whole, fraction = amount[: part.start()], part[1]
    else:
        whole, fraction = amount, ""
    digits = "".join(filter(str.isdecimal, whole))
    return float(f"{'-' if sign else ''}{digits or '0'}.{fraction or '0'}")


def _parts_thousands(amount: str, part: re.Match[str], mark: str | None) -> bool:
    """Whether the last mark of an amount parts its thousands, and no fraction."""
    if len(part[1]) != 3 or amount[0] in ".,0":
        return False
    return mark == amount[part.start()] or (mark is None and amount.count(",") > 1)


_SIGN = re.compile(rf"[{CURRENCY_SIGNS}%‰％]|[<>=≤≥≠±](?=\s?[-\u2212\u2013]?\d)|(?<=[^\W_])[+#]{{1,2}}(?![\w+#])")


_MOST_RESIGNED = 1000


def differ_in_signs(old: str, new: str) -> bool:
    """Whether two texts of the same letters and digits say another thing by what stands between these.

    A minus, the mark of a fraction, a currency, "C++" and "C#", a tick in place of a cross. How numbers are written
    is none of it: blanks and marks that part thousands, dates and times in another form.
    """
    if old == new:
        return False
    before, after = stilled(old), stilled(new)
    if _SIGN.findall(before) != _SIGN.findall(after):
        return True
    marks = marks_in(before), marks_in(after)
    if marks[0] != marks[1] and all(marks):
        return True
    numbers = [[_number_of(found) for found in _NUMBER.finditer(text)] for text in (before, after)]
    return len(numbers[0]) == len(numbers[1]) and numbers[0] != numbers[1]


def resigned_blocks(old: Fingerprint, new: Fingerprint) -> Iterator[tuple[int, int]]:
    """Blocks of two states that have the same letters and digits but other signs, or that are other cells of their row.

    None where texts are not at hand.
    """
    if not old.blocks or not new.blocks:
        return
    places, others = _places(old), _places(new)
    alike = ((at, others[block]) for block, at in places.items() if len(at) == len(others.get(block, ())))
    cells = CellMoves(old, new)
    every = ((i, j, cells.moved(i, j)) for at, there in alike for i, j in zip(at, there, strict=True))
    pairs = ((i, j, moved) for i, j, moved in every if moved or old.text(i) != new.text(j))
    for i, j, moved in islice(pairs, _MOST_RESIGNED):
        if moved or differ_in_signs(old.text(i), new.text(j)):
            yield i, j


def _places(state: Fingerprint) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for at, block in enumerate(state.hashes):
        found.setdefault(block, []).append(at)
    return found
