"""Base forms by affix rules equal a slow expansion of the dictionary, and hold for the Czech files of hunspell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis import Archive
from letopis.config import SearchSettings, Settings
from letopis.index.base_forms import BaseForms
from letopis.index.hunspell import AffixFile, HunspellDictionary, parse_affix_file
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.word_index import WordIndex, derive_base_forms
from letopis_demo import languages

PLACES = ("/usr/share/hunspell", str(Path(__file__).parents[3] / ".bench/hunspell/usr/share/hunspell"))
MOMENT = datetime(2026, 5, 1, tzinfo=UTC)
LETTERS = st.text("ab", min_size=1, max_size=3)
ENDS = st.one_of(st.just("0"), LETTERS)


def hunspell_file(name: str) -> Path:
    """The affix file as Debian installs it, or as its package was unpacked under .bench."""
    found = [Path(place) / name for place in PLACES if (Path(place) / name).exists()]
    if not found:
        pytest.skip(f"NO {name}: the real rules were not tried; install Debian's hunspell-cs")
    return found[0]


def expanded(affixes: AffixFile, entries: list[tuple[str, str]]) -> dict[str, str]:
    """Every form that the rules make, written out: words, then one rule, then two."""
    found = {word: word for word, _ in entries}
    for depth in (1, 2):
        for word, flags in entries:
            for form in forms(affixes, word, affixes.flags(flags), depth):
                found.setdefault(form, word)
    return found


def forms(affixes: AffixFile, word: str, flags: list[str], depth: int) -> Iterator[str]:
    rules = [rule for flag in flags for rule in affixes.rules.get(flag, ())]
    if depth == 1:
        yield from (form for rule in rules if (form := rule.form(word)) is not None)
        return
    ends = [(rule, form) for rule in rules if rule.suffix and (form := rule.form(word)) is not None]
    for start, (end, form) in product((rule for rule in rules if not rule.suffix), ends):
        if start.crosses and end.crosses and (whole := start.form(form)) is not None:
            yield whole
    for end, form in ends:
        for rule in (rule for flag in end.further for rule in affixes.rules.get(flag, ()) if rule.suffix):
            if (whole := rule.form(form)) is not None:
                yield whole


@st.composite
def affix_files(draw: st.DrawFn) -> str:
    lines = ["SET UTF-8"]
    for flag in "XYZ":
        kind = draw(st.sampled_from(["SFX", "PFX"]))
        rules = draw(st.lists(st.tuples(ENDS, ENDS, st.sampled_from([".", "a", "[^b]", "b"])), min_size=1, max_size=3))
        further = draw(st.sampled_from(["", "/X", "/YZ"])) if kind == "SFX" else ""
        lines.append(f"{kind} {flag} {draw(st.sampled_from('YN'))} {len(rules)}")
        lines += [f"{kind} {flag} {strip} {add}{further} {condition}" for strip, add, condition in rules]
    return "\n".join(lines)


@given(affix_files(), st.lists(st.tuples(LETTERS, st.sampled_from(["", "X", "YZ", "XYZ"])), max_size=6))
@settings(max_examples=300, deadline=None)
def test_taking_forms_apart_equals_writing_all_forms_out(aff: str, entries: list[tuple[str, str]]) -> None:
    affixes = parse_affix_file(aff.encode())
    dictionary = "\n".join([str(len(entries)), *(f"{word}/{flags}" for word, flags in entries)])
    found, truth = HunspellDictionary(affixes, dictionary.encode()), expanded(affixes, entries)
    tried = {*truth, *("".join(letters) for size in (1, 2, 3, 4) for letters in product("ab", repeat=size))}
    assert {form: found.base(form) for form in tried if form} == {form: truth.get(form) for form in tried if form}


def test_czech_rules_of_hunspell_join_inflected_forms() -> None:
    bases = BaseForms(SearchSettings(affixes=(f"cs={hunspell_file('cs_CZ.aff')}",))).of("cs")
    pairs = [(form, row[1]) for row in languages.CZECH.nouns for form in row[2:]]
    joined = sum(bases[form] == bases[first] for form, first in pairs)
    assert joined >= 0.98 * len(pairs)
    school = {"katedra": "katedry katedře katedru katedrou kateder katedrám katedrách katedrami",
              "student": "studenta studentovi studentem studenti studentů studentům studenty",
              "přednáška": "přednášky přednášce přednášku přednáškou přednášek přednáškám"}  # fmt: skip
    assert [(form, bases[form]) for first, row in school.items() for form in row.split() if bases[form] != first] == []


def test_czech_rules_of_hunspell_serve_search_and_wordfigure(tmp_path: Path) -> None:
    text = "<html lang=cs><p>Tato stránka je o tom, že se na škole učí také před {}, a je velmi užitečná.</p></html>"
    rules = Settings(search=SearchSettings(affixes=(f"cs={hunspell_file('cs_CZ.aff')}",)))
    with Archive(tmp_path / "a", settings=rules) as archive:
        for name, word in {"a": "přednáškou", "b": "přednáška", "c": "kvrdlicou", "d": "kvrdlica"}.items():
            archive.put(f"http://{name}.example/", text.format(word).encode(), MOMENT, "text/html; charset=utf-8")
        index = WordIndex(archive)

        def found(word: str) -> list[str]:
            return sorted(hit.url[7] for hit in search(index, parse_word_query(word)))

        assert found("přednáška") == found("přednáškou") == ["a", "b"]
        assert found("kvrdlica") == ["d"]
        # What no dictionary knows, an ending joins; what the rules know stays as it is.
        assert derive_base_forms(index, "ou", "a") == [("kvrdlicou", "kvrdlica")]
        assert found("kvrdlica") == found("kvrdlicou") == ["c", "d"]
        assert found("přednáška") == ["a", "b"]
