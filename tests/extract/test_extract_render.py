from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from letopis.extract import page_from_json, page_to_json, page_to_xml
from letopis.model import Block, BlockKind, Link, LinkType, Page
from letopis.model.page import TableCells

texts = st.text(max_size=30)
times = st.none() | st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)).map(
    lambda t: t.replace(microsecond=0, tzinfo=UTC)
)
pages = st.builds(
    Page,
    url=texts,
    content_type=texts,
    title=texts,
    robots=st.frozensets(texts, max_size=3),
    published=times,
    modified=times,
    blocks=st.lists(st.builds(Block, st.sampled_from(BlockKind), texts), max_size=4).map(tuple),
    links=st.lists(st.builds(Link, texts, st.sampled_from(LinkType), texts, texts, texts), max_size=4).map(tuple),
    frame=st.frozensets(st.integers(0, 3)),
    warnings=st.lists(texts, max_size=2).map(tuple),
)


@settings(max_examples=150, deadline=None)
@given(pages)
def test_json_gives_the_page_back(page):
    assert page_from_json(page_to_json(page)) == page


@settings(max_examples=150, deadline=None)
@given(pages)
def test_xml_is_well_formed_whatever_the_page_holds(page):
    root = etree.fromstring(page_to_xml(page))
    assert len(root.findall("block")) == len(page.blocks)
    assert len(root.findall("link")) == len(page.links)


def test_xml_names_what_it_shows():
    page = Page(
        "http://a.org/",
        "text/html",
        title="T",
        blocks=(Block(BlockKind.H1, "x & y"),),
        links=(Link("http://b.org/", LinkType.A, "b"),),
    )
    assert '<block kind="h1">x &amp; y</block>' in page_to_xml(page)
    assert '<link target="http://b.org/" type="a">b</link>' in page_to_xml(page)


def test_the_cells_of_very_wide_rows_come_back():
    page = Page("http://a.org/", "text/csv", cells=TableCells((-1, 0), ((0, 1 << 16_383 | 1),)))
    assert page_from_json(page_to_json(page)) == page
