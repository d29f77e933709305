"""How questions are read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import UsageError
from letopis.index.query_language import FieldFilter, QueryClause, QueryTerm, parse_word_query
from letopis.model import BlockKind

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_words_phrases_prefixes_and_exclusions_are_told_apart() -> None:
    question = parse_word_query('Katedra "řídicí techniky" arch* -kybernetika')
    assert question.clauses == (
        QueryClause((QueryTerm(("katedra",)),)),
        QueryClause((QueryTerm(("řídicí", "techniky"), exact=True),)),
        QueryClause((QueryTerm(("arch",), prefix=True),)),
        QueryClause((QueryTerm(("kybernetika",)),), negated=True),
    )


def test_limits_are_taken_out_of_the_words() -> None:
    question = parse_word_query("page site:Example.ORG -lang:DE type:text/html site:http://other.example:81/x")
    assert question.limits == (
        FieldFilter("site", "example.org"),
        FieldFilter("language", "de", negated=True),
        FieldFilter("type", "text/html"),
        FieldFilter("site", "other.example:81"),
    )
    assert question.clauses == (QueryClause((QueryTerm(("page",)),)),)


def test_kinds_of_blocks_stand_before_a_word_or_hold_for_all() -> None:
    assert parse_word_query('h1:"two words"').clauses[0].alternatives[0].blocks == (BlockKind.H1,)
    mixed = parse_word_query("title:one two", blocks=("cell", "item")).clauses
    assert [clause.alternatives[0].blocks for clause in mixed] == [(BlockKind.TITLE,), (BlockKind.CELL, BlockKind.ITEM)]


@pytest.mark.parametrize("text", ["„two words“ x", "“two words” x", "«two words» x", "»two words« x", '"two words" x'])
def test_quotes_are_understood_as_people_type_them(text: str) -> None:
    assert parse_word_query(text) == parse_word_query('"two words" x')


def test_a_quotation_mark_that_stands_alone_in_a_text_is_no_quote() -> None:
    assert parse_word_query("word“ other") == parse_word_query("word other")
    assert parse_word_query('"(a) OR (b)" (c)').clauses[1:] == (QueryClause((QueryTerm(("c",)),)),)


def test_what_is_invisible_inside_a_word_does_not_divide_it() -> None:
    assert parse_word_query("Donau\u00addampf\u2060schiff") == parse_word_query("donaudampfschiff")


def test_or_joins_its_neighbours() -> None:
    clauses = parse_word_query("one two OR three four").clauses
    assert [[term.words for term in clause.alternatives] for clause in clauses] == [
        [("one",)],
        [("two",), ("three",)],
        [("four",)],
    ]


def test_alternatives_of_one_filter_may_be_joined_and_nothing_else_with_a_filter() -> None:
    assert parse_word_query("x site:a.example OR site:b.example") == parse_word_query("x site:a.example site:b.example")
    assert parse_word_query("-one OR -two").clauses[0].negated


@pytest.mark.parametrize("text", ["a OR -b", "-a OR b", "a OR site:b", "site:a OR b", "site:a OR lang:cs"])
def test_what_or_cannot_join_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="OR cannot join"):
        parse_word_query(text)


def test_and_between_words_is_what_a_blank_is() -> None:
    assert parse_word_query("one AND two") == parse_word_query("one two")
    assert parse_word_query('one "AND" and').clauses[1:] == (
        QueryClause((QueryTerm(("and",), exact=True),)),
        QueryClause((QueryTerm(("and",)),)),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("site: example.org", "nothing stands behind 'site:'"),
        ("x -lang:", "nothing stands behind 'lang:'"),
        ("title: word", "nothing stands behind 'title:'"),
        ("l*brary", "has a star in a word"),
        ("*brary", "begins with a star"),
        ("lang:english x", "is not a language code"),
        ("type:pdf", "is not a media type"),
        ("(a b) OR c", "parentheses do not group words"),
        ("a OR (b c)", "parentheses do not group words"),
    ],
)
def test_what_only_looks_like_the_language_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_word_query(text)


def test_what_falls_apart_into_words_is_a_phrase() -> None:
    assert parse_word_query("e-mail").clauses[0].alternatives[0] == QueryTerm(("e", "mail"), exact=True)
    assert parse_word_query("中文").clauses[0].alternatives[0] == QueryTerm(("中", "文"), exact=True)
    assert parse_word_query("10:30").clauses[0].alternatives[0] == QueryTerm(("10", "30"), exact=True)


@pytest.mark.parametrize("text", ["", "   ", "-", '"', 'a "b', "!?", "OR"])
def test_a_question_without_words_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_word_query(text)


def test_an_unknown_kind_and_a_moment_with_a_span_are_refused() -> None:
    with pytest.raises(UsageError, match="paragraph"):
        parse_word_query("x", blocks=("chapter",))
    with pytest.raises(UsageError, match="give 'at'"):
        parse_word_query("x", at=NOW, since=NOW)
    with pytest.raises(UsageError, match="ends before it begins"):
        parse_word_query("x", since=NOW, until=NOW - timedelta(days=1))
    with pytest.raises(UsageError, match="fewer"):
        parse_word_query(" ".join(f"w{number}" for number in range(100)))


PLAIN_WORDS = st.from_regex("[A-Za-z0-9]{1,9}", fullmatch=True) | st.sampled_from(["OR", "AND", "w" * 90])


@given(st.lists(PLAIN_WORDS, min_size=1))
@settings(max_examples=100, deadline=None)
def test_words_alone_are_read_as_the_grammar_reads_them(words: list[str]) -> None:
    try:
        expected = parse_word_query("\t".join(words) + "\n", blocks=("h1",), at=NOW)
    except UsageError as error:
        with pytest.raises(UsageError, match=re.escape(str(error))):
            parse_word_query(" ".join(words), blocks=("h1",), at=NOW)
    else:
        assert parse_word_query(" ".join(words), blocks=("h1",), at=NOW) == expected


@given(st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from(' "*-:ORsite'), max_size=80))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    try:
        question = parse_word_query(text)
    except UsageError:
        return
    assert question.clauses or question.limits
    assert all(term.words for clause in question.clauses for term in clause.alternatives)
