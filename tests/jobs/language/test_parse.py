"""Job files become queries, or a sentence that names the line and the element."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from string import ascii_letters
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from letopis.errors import UsageError
from letopis.jobs.documents import canonical_xml, result_json
from letopis.jobs.language.interpreter import STEPS
from letopis.operations.job_files import language_schema, parse_job_file


def test_all_attributes_of_the_root_are_read() -> None:
    text = b'<query package="sengine" name="my question" priority="7" refresh="1h" permission="3"><cleaner/></query>'
    query = parse_job_file(text)
    assert (query.package, query.name, query.priority, query.refresh, query.permission) == (
        "sengine", "my question", 7, "1h", 3,
    )  # fmt: skip


def test_the_documents_root_means_the_same_and_its_marks_are_read_over() -> None:
    plain = parse_job_file(b'<query package="downloader"><cleaner/></query>')
    assert (
        parse_job_file(b'<senginequery package="downloader" idquery="none" iduser="1"><cleaner/></senginequery>')
        == plain
    )
    assert (plain.name, plain.priority, plain.refresh, plain.permission) == ("", 0, "", 1)


@pytest.mark.parametrize(
    ("steps", "home"),
    [
        ("<search>word</search>", "sengine"),
        ('<wordprefix between="5">katedra</wordprefix>', "sengine"),
        ('<map site="example.org"/><search>word</search>', "mapgenerator"),
        ('<map site="example.org"/><pagerank/>', "downloader"),
        ("<download><url>example.org</url></download>", "downloader"),
    ],
)
def test_a_query_without_a_package_goes_where_its_slowest_step_belongs(steps: str, home: str) -> None:
    assert parse_job_file(f"<query>{steps}</query>".encode()).package == home


def test_comments_instructions_spelling_and_order_of_attributes_do_not_matter() -> None:
    one = parse_job_file(b"<?xml version='1.0'?><!-- a --><query name='n' package='sengine'><?x y?><cleaner/></query>")
    two = parse_job_file(b'<query package="sengine" name="n"><cleaner></cleaner></query>')
    assert one == two


WRONG = [
    ("<query><cleaner/>", "not well-formed XML"),
    ("", "not well-formed XML"),
    ("<queries><cleaner/></queries>", "line 1: the root is <queries>"),
    ("<query></query>", "line 1: Element 'query'"),
    ("<query>\n<dance/></query>", "line 2: <dance> is not a step; choose one of copyfromcache, download"),
    ("<query>\n\n<download maxlevel='deep'><url>a.example</url></download></query>", "line 3: Element 'download'"),
    ("<query><download maxlevel='1'/></query>", "Element 'download'"),
    ("<query priority='high'><cleaner/></query>", "attribute 'priority'"),
    ("<query permission='-1'><cleaner/></query>", "attribute 'permission'"),
    ("<query refresh='often'><cleaner/></query>", "refresh of <query> is 'often'; write"),
    ("<query refresh='0s'><cleaner/></query>", "refresh of <query>"),
    ("<query colour='red'><cleaner/></query>", "'colour'"),
    ("<query>\n<map site='example.org' at='whenever'/></query>", "line 2: in <map>: 'whenever' is not a time"),
    ("<query>\n<check>\n<url>ftp://x/</url></check></query>", "line 3: the text of <url>: 'ftp://x/' cannot"),
    ("<query><search> </search></query>", "the query is empty"),
    ("<query><search block='shoe'>x</search></query>", "'shoe' is not a kind of block"),
    ("<query><urltransform><redirect base='a.example/x'> </redirect></urltransform></query>", "Element 'redirect'"),
    ("<query><urltransform><varlist base='a.example/'><var name='x'>maybe</var></varlist></urltransform></query>",
     "in <urltransform>: <var name=\"x\"> says 'maybe'"),
    ("<query><pagerank coefficient='1.5'/></query>", "in <pagerank>: coefficient must be at most"),
    ("<query><crawler mode='deluxe'/></query>", "attribute 'mode'"),
    ("<query><wordprefix between='0'>x</wordprefix></query>", "in <wordprefix>: distance must be at least 1"),
    ("<query><export kind='warc' file='../../etc/passwd'/></query>", "is not a file name"),
    ("<query><download><url>a.example</url><exclude>(</exclude></download></query>", "is not a regular expression"),
    ("<query package='..'><cleaner/></query>", "attribute 'package'"),
    ("<query xslt='glitter'><cleaner/></query>", "xslt of <query>: unknown stylesheet 'glitter'"),
    ("<query package='unknown'></query>", "<query> holds nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_what_is_wrong_is_named_with_line_and_element(text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_job_file(text.encode())
    assert told in str(caught.value)


def test_the_schema_is_a_schema_and_knows_exactly_the_steps_that_there_are() -> None:
    root = etree.fromstring(language_schema())
    etree.XMLSchema(root)
    xs = "{http://www.w3.org/2001/XMLSchema}"
    [choice] = root.findall(f"{xs}complexType[@name='Query']/{xs}choice")
    assert {element.get("name") for element in choice} == set(STEPS)


TEXT = st.text(ascii_letters + "áž&<>\"' \n", max_size=20)
WORD = st.text(ascii_letters, min_size=1, max_size=10)


@st.composite
def job_files(draw: st.DrawFn) -> bytes:
    """Job files that are right, in all spellings."""
    root = etree.Element(draw(st.sampled_from(["query", "senginequery"])))
    for name, values in {
        "name": TEXT,
        "priority": st.integers(-1000, 1000).map(str),
        "refresh": st.sampled_from(["", "use", "1h", "90s"]),
        "permission": st.integers(0, 1000).map(str),
        "package": st.sampled_from(["downloader", "sengine", "mapgenerator"]),
    }.items():
        if draw(st.booleans()):
            root.set(name, draw(values))
    for _ in range(draw(st.integers(1, 5))):
        _add_step(draw, root)
        root.append(etree.Comment("between"))
        root[-1].tail = draw(st.sampled_from(["", "\n  "]))
    coding: Literal["utf-8"] = draw(st.sampled_from(["utf-8", "utf-16", "iso-8859-2"]))
    return etree.tostring(root, encoding=coding)


def _add_step(draw: st.DrawFn, root: etree._Element) -> None:
    kind = draw(st.sampled_from(["map", "search", "download", "urltransform", "wordprefix", "pagerank"]))
    step = etree.SubElement(root, kind)
    if kind == "map":
        step.set("site", draw(WORD) + ".example")
    elif kind in ("search", "wordprefix"):
        step.text = draw(WORD)
    elif kind == "download":
        step.set("maxlevel", str(draw(st.integers(0, 9))))
        etree.SubElement(step, "url").text = draw(WORD) + ".example/?a=1&b=2"
    elif kind == "urltransform":
        redirect = etree.SubElement(step, "redirect", base=draw(WORD) + ".example/a")
        redirect.text = draw(WORD) + ".example/b"


MANY = 200_000 if os.environ.get("LETOPIS_LONG") else 100


@given(job_files())
@settings(max_examples=MANY, deadline=None)
def test_reading_a_query_again_changes_nothing(data: bytes) -> None:
    query = parse_job_file(data)
    again = parse_job_file(query.xml)
    assert again == query
    assert parse_job_file(canonical_xml(etree.fromstring(again.xml))) == query


@given(st.binary(max_size=300) | st.text("<>/query&;!DOCTYPE[]\"' ='", max_size=200).map(str.encode))
@settings(max_examples=3 * MANY, deadline=None)
def test_any_bytes_are_a_query_or_a_sentence(data: bytes) -> None:
    with suppress(UsageError):
        assert parse_job_file(data).xml


@given(job_files(), st.data())
@settings(max_examples=2 * MANY, deadline=None)
def test_damaged_job_files_are_queries_or_a_sentence(data: bytes, draws: st.DataObject) -> None:
    at = draws.draw(st.integers(0, len(data)))
    cut = draws.draw(st.integers(0, 20))
    inserted = draws.draw(st.sampled_from([b"", b"<", b">", b"&", b"&x;", b"\0", b"<map/>", b'"', b"<!--", b"]]>"]))
    with suppress(UsageError):
        assert parse_job_file(data[:at] + inserted + data[at + cut :]).xml


def test_results_have_a_json_form_however_deep_they_are() -> None:
    deep = "<page url='a'>" * 1500 + "</page>" * 1500
    text = result_json(f"<result id='1'><map site='x'>{deep}</map><diff>a &lt; b</diff></result>".encode())
    assert text.startswith(
        '{"element": "result", "id": "1", "children": [{"element": "map", "site": "x", "children": ['
    )
    with pytest.raises(UsageError, match="ask for a map with a depth"):
        result_json(b"<page>" * 3000 + b"</page>" * 3000)
    flat = json.loads(
        result_json(b"<result><broken count='1'><link status='404'/></broken><diff>a &lt; b</diff></result>")
    )
    assert flat["children"] == [
        {"element": "broken", "count": "1", "children": [{"element": "link", "status": "404", "children": []}]},
        {"element": "diff", "children": [], "text": "a < b"},
    ]
