"""Prices and stock as shops tell them."""

from __future__ import annotations

from time import process_time

import pytest

from letopis.change.filters import ContentFilter, filter_source
from letopis.change.offers import price_markup, stock_markup
from letopis.change.values import first_number
from letopis.model.page import FilterKind

LD = '<script type="application/ld+json">{"@graph": [{"@type": "Product", "offers": {"@type": "Offer", "price": 19.9, '
LD += '"priceCurrency": "EUR", "availability": "https://schema.org/OutOfStock"}}]}</script>'


@pytest.mark.parametrize(
    ("source", "price"),
    [
        (LD + "<p>was 99 EUR</p>", "19.9 EUR"),
        (
            '<meta property="product:price:amount" content="5"><meta property="product:price:currency" content="CZK">',
            "5 CZK",
        ),
        (
            '<span itemprop="price" content="12.50">12 and a half</span><i itemprop="priceCurrency" content="USD">',
            "12.50 USD",
        ),
        ("<p>Lamp</p><p>Now <del>$29.00</del> $19.90 only</p>", "$19.90"),
        ("<p>Cena 1 299 Kč s DPH</p>", "1 299 Kč"),
        ("<p>Cena: 1 299,- Kč</p>", "1 299,- Kč"),
        ('<script type="application/ld+json">{broken</script><b>€ 7</b>', "€ 7"),
        ("<p>Call us in 2026</p>", ""),
        ("<p>Open 10.-20. May</p>", ""),
        ("<p>Uhr CHF 1’234.50</p>", "CHF 1’234.50"),
        ("<p>₹1,23,456.00 only</p>", "₹1,23,456.00"),
        ("<p>R$ 1.299,90 à vista</p>", "R$ 1.299,90"),
        ("<p>１９８０円</p>", "１９８０円"),
        ("<p>Rs. 500</p>", "Rs. 500"),
        ("<p>1 299 ₽</p>", "1 299 ₽"),
        ("<p>Jen 1.299,-</p>", "1.299,-"),
    ],
)
def test_the_price_is_that_which_the_shop_tells_machines_else_what_people_read(source: str, price: str) -> None:
    assert price_markup(source) == (f"<p>{price}</p>" if price else "")


@pytest.mark.parametrize(
    ("source", "stock"),
    [
        (LD + "<p>Add to cart</p>", "out of stock"),
        ('<link itemprop="availability" href="https://schema.org/InStock">', "in stock"),
        ("<button>Add to cart</button>", "in stock"),
        ("<button disabled>Add to cart</button><p>Sold out</p>", "out of stock"),
        ("<p>Vyprodáno</p>", "out of stock"),
        ("<p>Skladem 5 ks</p>", "in stock"),
        ("<p>Our history</p>", ""),
        ("<p>Not in stock</p>", "out of stock"),
        ("<p>Temporarily out-of-stock</p>", "out of stock"),
        ("<p>Zboží není na skladě</p>", "out of stock"),
        ("<p>Нет в наличии</p>", "out of stock"),
        ("<p>売り切れ</p>", "out of stock"),
        ("<p>Na sklade</p>", "in stock"),
    ],
)
def test_a_thing_is_out_of_stock_as_soon_as_the_page_says_so(source: str, stock: str) -> None:
    assert stock_markup(source) == (f"<p>{stock}</p>" if stock else "")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1'234.50 CHF", 1234.5), ("1\u2009299,90", 1299.9), ("₹1,23,456", 123456), ("-5 °C", -5), ("\u22125,5", -5.5),
        ("0.123 %", 0.123), ("0,125", 0.125), (".99", 0.99), ("1.234,567", 1234.567), ("5 10", 5), ("v1.2.3", 1.2),
        ("٣٫٥", 3.5), ("12.345", 12345), ("1,000,000.5", 1_000_000.5), ("10-5", 10), ("1 234 567", 1_234_567),
    ],
)  # fmt: skip
def test_the_first_number_is_read_as_people_write_it(text: str, number: float) -> None:
    assert first_number(text) == number


@pytest.mark.parametrize("seed", ["1,", "1.", "1 ", "12,34,", "'1", "1'234", "-", ".", "0"])
def test_hostile_numbers_are_read_quickly(seed: str) -> None:
    started = process_time()
    first_number("a" + seed * 100_000)
    price_markup(f"<p>{seed * 50_000}</p>")
    assert process_time() - started < 5


def test_a_price_is_looked_for_where_the_selector_says() -> None:
    page = "<p class=other>$5</p><p class=mine>$7</p>"
    assert filter_source(page, "text/html", [ContentFilter(FilterKind.PRICE, ".mine")]) == "<p>$7</p>"
    assert filter_source(page, "text/html", [ContentFilter(FilterKind.PRICE, "html")]) == "<p>$5</p>"


def test_deep_json_exhausts_nothing() -> None:
    deep = '<script type="application/ld+json">' + "[" * 100_000 + "]" * 100_000 + "</script><b>$3</b>"
    assert price_markup(deep) == "<p>$3</p>"
