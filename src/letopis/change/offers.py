"""What a shop says about a product: its price, and whether it is in stock.

Shops publish this in JSON-LD, microdata or metadata; otherwise the visible text is searched.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from letopis.change.fingerprints import normalized_words
from letopis.change.values import AMOUNT, CURRENCIES, CURRENCY_SIGNS

_MOST_TEXT = 200_000
_MOST_VALUES = 10_000
_WORDS = frozenset(("ALL", "TOP", "TRY", "CUP", "MOP", "GEL", "MAD", "SOS", "PEN", "COP", "BAM", "LAK"))
"""Codes of currencies that shops write for other things."""
_CODES = "|".join([code for code in CURRENCIES.split("|") if code not in _WORDS])
_CURRENCY = (
    rf"(?:\b(?:US|CA|AU|NZ|HK|R))?[{CURRENCY_SIGNS}]|(?<![A-Za-z])(?:{_CODES})(?![A-Za-z])|Kčs?|Kc\b|zł|kr\b\.?|Ft\b|[Ll]ei\b|"
    r"Fr\.|Rs\b\.?|лв\b\.?|грн\b\.?|руб\b\.?|TL\b|[元円圆圓원]"
)
_FIRST, _LAST = AMOUNT, AMOUNT.replace(r"\1", r"\2")
_EVEN = r"[,.][-–—](?!\s?\d)"
_WRITTEN_PRICE = re.compile(rf"(?:{_CURRENCY})\s?(?:{_FIRST})|(?:{_LAST})(?:{_EVEN})?\s?(?:{_CURRENCY}|{_EVEN}|:-)")
_LONGEST_PRICE = 40
_META_PRICES = (("product:price:amount", "product:price:currency"), ("og:price:amount", "og:price:currency"))
_OUT_WORDS = (
    "out of stock", "not in stock", "sold out", "currently unavailable", "not available", "no longer available",
    "notify me when", "není skladem", "není na skladě", "nie je na sklade", "nie je skladom", "vyprodáno", "vypredané",
    "nedostupn", "momentálně není", "ausverkauft", "nicht vorrätig", "nicht auf lager", "nicht lieferbar", "épuisé",
    "rupture de stock", "agotado", "sin existencias", "esaurito", "non disponibile", "uitverkocht", "niet op voorraad",
    "wyprzedan", "niedostępn", "brak w magazynie", "нет в наличии", "распродано", "немає в наявності", "slutsåld",
    "ikke på lager", "ej i lager", "売り切れ", "在庫切れ", "在庫なし", "缺货", "缺貨", "售罄", "품절",
)  # fmt: skip
_IN_WORDS = (
    "in stock", "add to cart", "add to basket", "buy now", "skladem", "na skladě", "na sklade", "skladom", "do košíku",
    "vložit do košíku", "auf lager", "lieferbar", "in den warenkorb", "en stock", "ajouter au panier", "en existencia",
    "añadir al carrito", "disponibile", "op voorraad", "dostępny", "do koszyka", "в наличии", "в корзину",
    "в наявності", "i lager", "på lager", "在庫あり", "有货", "有貨", "재고 있음",
)  # fmt: skip
_OUT_STATES = ("outofstock", "soldout", "discontinued", "backorder", "preorder")


def is_price(text: str) -> bool:
    """Whether a short text is an amount of money, perhaps with a word before it."""
    return len(text) <= _LONGEST_PRICE and _WRITTEN_PRICE.search(text) is not None


def price_markup(source: str) -> str:
    """The price that markup names, as a paragraph; empty where it names none."""
    page = LexborHTMLParser(source)
    return _paragraph(next(_prices(page), ""))


def stock_markup(source: str) -> str:
    """`in stock`, `out of stock`, or empty where markup does not tell, as a paragraph."""
    page = LexborHTMLParser(source)
    return _paragraph(_stated_stock(page) or _written_stock(_text(page)))


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>" if text else ""


def _prices(page: LexborHTMLParser) -> Iterator[str]:
    for offer in _offers(page):
        price = offer.get("price", offer.get("lowPrice"))
        if isinstance(price, str | int | float) and str(price).strip():
            yield f"{price} {offer.get('priceCurrency', '')}".strip()
    for amount, currency in _META_PRICES:
        if found := _meta(page, amount):
            yield f"{found} {_meta(page, currency)}".strip()
    for node in page.css('[itemprop="price"]'):
        if value := _item_value(node):
            currency_node = page.css_first('[itemprop="priceCurrency"]')
            yield f"{value} {_item_value(currency_node) if currency_node else ''}".strip()
    if match := _WRITTEN_PRICE.search(_text(page)):
        yield match[0]


def _stated_stock(page: LexborHTMLParser) -> str:
    stated = [str(offer.get("availability", "")) for offer in _offers(page)]
    stated += [_item_value(node) for node in page.css('[itemprop="availability"]')]
    stated += [_meta(page, name) for name in ("product:availability", "og:availability")]
    for text in filter(None, stated):
        state = re.sub(r"[^a-z]", "", text.rpartition("/")[2].lower())
        return "out of stock" if state in _OUT_STATES or state.startswith("out") else "in stock"
    return ""


def _written_stock(text: str) -> str:
    lowered = normalized_words(text)
    if any(word in lowered for word in _OUT_WORDS):
        return "out of stock"
    return "in stock" if any(word in lowered for word in _IN_WORDS) else ""


def _text(page: LexborHTMLParser) -> str:
    for node in page.css("script, style, del, s"):
        node.decompose()
    root = page.body or page.root
    return (root.text(separator=" ") if root else "")[:_MOST_TEXT]


def _item_value(node: LexborNode) -> str:
    fields = node.attributes
    return (fields.get("content") or fields.get("href") or node.text() or "").strip()


def _meta(page: LexborHTMLParser, name: str) -> str:
    for node in page.css("meta[content]"):
        if name in (node.attributes.get("property"), node.attributes.get("name")):
            return (node.attributes.get("content") or "").strip()
    return ""


def _offers(page: LexborHTMLParser) -> Iterator[dict[str, Any]]:
    """The offers in JSON-LD, in their order."""
    for node in page.css('script[type="application/ld+json"]'):
        try:
            document = json.loads(node.text() or "")
        except (ValueError, RecursionError):
            continue
        for value in _objects(document):
            kind = value.get("@type")
            if any(str(one) in ("Offer", "AggregateOffer") for one in (kind if isinstance(kind, list) else [kind])):
                yield value


def _objects(document: Any) -> Iterator[dict[str, Any]]:
    """All objects inside a JSON value, by a stack: no depth can exhaust it."""
    stack, seen = [document], 0
    while stack and seen < _MOST_VALUES:
        value, seen = stack.pop(), seen + 1
        inner: Iterable[Any] = ()
        if isinstance(value, dict):
            yield value
            inner = value.values()
        elif isinstance(value, list):
            inner = value
        stack.extend(reversed(list(inner)))
