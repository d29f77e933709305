"""Prices and stock as shops tell them."""

from __future__ import annotations

import pytest

from letopis.change import ContentFilter, FilterKind, filter_source
from letopis.change.offers import price_markup, stock_markup

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
    ],
)
def test_a_thing_is_out_of_stock_as_soon_as_the_page_says_so(source: str, stock: str) -> None:
    assert stock_markup(source) == (f"<p>{stock}</p>" if stock else "")


def test_a_price_is_looked_for_where_the_selector_says() -> None:
    page = "<p class=other>$5</p><p class=mine>$7</p>"
    assert filter_source(page, "text/html", [ContentFilter(FilterKind.PRICE, ".mine")]) == "<p>$7</p>"
    assert filter_source(page, "text/html", [ContentFilter(FilterKind.PRICE, "html")]) == "<p>$5</p>"


def test_deep_json_exhausts_nothing() -> None:
    deep = '<script type="application/ld+json">' + "[" * 100_000 + "]" * 100_000 + "</script><b>$3</b>"
    assert price_markup(deep) == "<p>$3</p>"
