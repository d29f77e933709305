"""Words and their forms: dictionaries, affix files, endings settled by people, locks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from word_chronicle import DATES

from letopis import Archive
from letopis.config import SearchSettings, Settings
from letopis.errors import SettingError, UsageError
from letopis.index.base_forms import BaseForms
from letopis.index.hunspell import HunspellDictionary, parse_affix_file
from letopis.index.page_text import lowered, nfc, split_words
from letopis.index.query_language import parse_word_query
from letopis.index.search_results import search
from letopis.index.word_index import WordIndex, derive_base_forms, lock_base_form, release_base_form

AFF = """# a comment
SET UTF-8
FLAG char
PFX N Y 1
PFX N   0     ne         .

SFX Z Y 5
SFX Z   a     y          a
SFX Z   a     u          a
SFX Z   ra    ře         ra
SFX Z   a     ou         [^c]a
SFX Z   ca    ci         ca
SFX X N 1
SFX X   0     s          [^s]
"""
DIC = "5\nkatedra/Z\nulica/Z\nznámý/N\npage/X\nnovinka/ZN po:noun\n"

CZECH = (
    "<html lang=cs><title>Stránka</title><p>Tato stránka je o tom, že se na fakultě také učí {}, která je podle "
    "děkana při škole již více let a může být pro studenty velmi užitečná.</p></html>"
)


RUSSIAN = (
    "<html lang=ru><title>Страница</title><p>Эта страница о том, что в университете каждый день работают с {}, и она "
    "очень полезна для всех студентов, которые там учатся.</p></html>"
)
ENGLISH = (
    "<html lang=en><title>A page</title><p>This page is about the {} of the university, which is described here for "
    "all of its students and for everybody else.</p></html>"
)


def inflection(aff: str = AFF, dic: str = DIC) -> HunspellDictionary:
    return HunspellDictionary(parse_affix_file(aff.encode()), dic.encode())


def test_affix_files_give_base_forms() -> None:
    base = inflection().base
    assert {base(form) for form in ("katedra", "katedry", "katedru", "katedře", "katedrou")} == {"katedra"}
    assert base("ulici") == "ulica"
    assert base("ulicou") is None
    assert (base("neznámý"), base("pages")) == ("známý", "page")
    assert (base("nenovinkou"), base("nenovinka")) == ("novinka", "novinka")


class ListedForms:
    """A dictionary of some forms; words that it does not list are their own base forms."""

    def __init__(self, **bases: str) -> None:
        self._bases = bases | {base: base for base in bases.values()}

    def lemmatize(self, form: str, language: str) -> str:
        return self._bases.get(form, form)

    def listed(self, form: str, language: str) -> str | None:
        return self._bases.get(form)

    def matching(self, beginnings: str, pattern: str, language: str) -> list[str]:
        return [form for form in self._bases if form[0] in beginnings and re.fullmatch(pattern, form)]


@pytest.mark.parametrize(
    ("language", "listed", "bases"),
    [
        # Participles and reflexive verbs are words of their own; a gerund is not taken for a participle.
        ("ru", {"работающих": "работать"}, {"работающих": "работающий", "работать": "работать"}),
        ("ru", {"оставшиеся": "остаться"}, {"оставшиеся": "оставшийся"}),
        ("ru", {"сделана": "сделать", "сделал": "сделать"}, {"сделана": "сделанный", "сделал": "сделать"}),
        ("ru", {"определялись": "определять"}, {"определялись": "определяться"}),
        ("ru", {"занимая": "занимать"}, {"занимая": "занимать"}),
        # Short passives belong to the verb, whose last consonant they soften.
        ("cs", {"odsouzena": "odsouzený", "soudí": "odsoudit"}, {"odsouzena": "odsoudit"}),
        ("cs", {"zjištěno": "zjištěný", "zjistí": "zjistit"}, {"zjištěno": "zjistit"}),
        ("cs", {"světlem": "světlo", "světlé": "světlý"}, {"světlem": "světlo"}),
    ],
)
def test_endings_correct_what_the_dictionary_says(language: str, listed: dict[str, str], bases: dict[str, str]) -> None:
    table = BaseForms(SearchSettings(), source=lambda: ListedForms(**listed)).of(language)
    assert {form: table[form] for form in bases} == bases


def test_forms_of_forms_lead_to_the_first_word() -> None:
    rules = "SET UTF-8\nSFX P Y 1\nSFX P ec cův/Y ec\nSFX Y Y 1\nSFX Y ův ova ův\n"
    assert [inflection(rules, "1\notec/P\n").base(form) for form in ("otcův", "otcova")] == ["otec", "otec"]
    assert inflection(rules, "2\notec/P\notcův/Y\n").base("otcova") == "otcův"


def test_prefixes_stand_before_suffixed_forms_only_where_both_cross() -> None:
    source = AFF.replace("SFX Z Y 5", "SFX Z N 5")
    base = inflection(source).base
    assert base("nenovinka") == "novinka"
    assert base("nenovinkou") is None


@pytest.mark.parametrize(
    ("head", "rules", "entry"),
    [
        ("FLAG long", "SFX Zz Y 1\nSFX Zz a y a", "katedra/XxZz"),
        ("FLAG num", "SFX 101 Y 1\nSFX 101 a y a", "katedra/7,101"),
        ("AF 1\nAF Z # 1", "SFX Z Y 1\nSFX Z a y a", "katedra/1"),
        ("NEEDAFFIX !", "SFX Z Y 1\nSFX Z a y a", "katedra/Z!"),
    ],
)
def test_flags_are_read_in_every_spelling(head: str, rules: str, entry: str) -> None:
    assert inflection(f"SET UTF-8\n{head}\n{rules}\n", f"1\n{entry}\n").base("katedry") == "katedra"


def test_older_charsets_are_read() -> None:
    rules = parse_affix_file(AFF.replace("UTF-8", "ISO8859-2").encode("iso8859-2"))
    assert HunspellDictionary(rules, DIC.encode("iso8859-2")).base("katedře") == "katedra"


def test_an_unknown_charset_is_named() -> None:
    with pytest.raises(SettingError, match="klingon"):
        parse_affix_file(b"SET klingon\n")


@given(st.binary(max_size=300), st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_broken_affix_files_do_no_harm(aff: bytes, dic: bytes) -> None:
    found = HunspellDictionary(parse_affix_file(b"SET UTF-8\nSFX A Y 1\nSFX A 0 s .\n" + aff), dic)
    for form in split_words(nfc(dic.decode("utf-8", "replace"))):
        assert found.base(form) != ""


def test_an_affix_file_of_the_settings_comes_before_the_dictionaries(tmp_path: Path) -> None:
    (tmp_path / "cs.aff").write_text(AFF)
    (tmp_path / "cs.dic").write_text("1\npřednáška/Z\n")
    with pytest.raises(SettingError, match="LANGUAGE=FILE"):
        BaseForms(SearchSettings(affixes=("cs.aff",)))
    with pytest.raises(SettingError, match=r"search\.affixes"):
        BaseForms(SearchSettings(affixes=(f"cs={tmp_path}/none.aff",)))
    known = Settings(search=SearchSettings(affixes=(f"cs={tmp_path}/cs.aff",)))
    for given_settings, count in ((Settings(), 0), (known, 1)):
        with Archive(tmp_path / f"a{count}", settings=given_settings) as archive:
            archive.put("http://a.example/", CZECH.format("přednáškou").encode(), DATES[0], "text/html; charset=utf-8")
            assert len(search(WordIndex(archive), parse_word_query("přednáška"))) == count


def test_endings_settled_by_people_join_forms_and_locks_part_them(small: Archive) -> None:
    small.put("http://a.example/", CZECH.format("přednáškou").encode(), DATES[0], "text/html; charset=utf-8")
    small.put("http://b.example/", CZECH.format("přednáška").encode(), DATES[0], "text/html; charset=utf-8")
    index = WordIndex(small)

    def found(word: str) -> list[str]:
        return sorted(hit.url for hit in search(index, parse_word_query(word)))

    assert found("přednáška") == ["http://b.example/"]
    assert derive_base_forms(index, "ou", "a") == [("přednáškou", "přednáška")]
    assert derive_base_forms(index, "ou", "a") == []
    both = ["http://a.example/", "http://b.example/"]
    assert found("přednáška") == found("přednáškou") == both
    lock_base_form(index, "Přednáškou")
    assert found("přednáška") == ["http://b.example/"]
    assert found("přednáškou") == ["http://a.example/"]
    assert derive_base_forms(index, "ou", "a") == []
    release_base_form(index, "přednáškou")
    assert derive_base_forms(index, "ou", "a") == [("přednáškou", "přednáška")]
    assert sorted(hit.url for hit in search(WordIndex(small), parse_word_query("přednáška"))) == both


@pytest.mark.parametrize(
    ("text", "base", "form"),
    [(CZECH, "katedra", "katedrou"), (RUSSIAN, "газета", "газетой"), (ENGLISH, "library", "libraries")],
    ids=["cs", "ru", "en"],
)
def test_a_base_form_finds_inflected_forms_and_back(small: Archive, text: str, base: str, form: str) -> None:
    for name, word in (("a", base), ("b", form)):
        small.put(f"http://{name}.example/", text.format(word).encode(), DATES[0], "text/html; charset=utf-8")
    index = WordIndex(small)
    found = [{hit.url for hit in search(index, parse_word_query(asked))} for asked in (base, form)]
    assert found == [{"http://a.example/", "http://b.example/"}] * 2
    assert [hit.url for hit in search(index, parse_word_query(f'"{form}"'))] == ["http://b.example/"]


def test_a_locked_word_is_its_own_base_whatever_the_dictionaries_say(small: Archive) -> None:
    text = "The servers are described here and the pages of it are about the servers of this network"
    small.put("http://a.example/", f"<html lang=en><p>{text}</p></html>".encode(), DATES[0])
    index = WordIndex(small)
    assert len(search(index, parse_word_query("server"))) == 1
    lock_base_form(index, "servers")
    assert search(index, parse_word_query("server")) == []
    assert len(search(index, parse_word_query("servers"))) == 1


def test_wordfigure_and_lock_want_one_word(small: Archive) -> None:
    with pytest.raises(UsageError):
        derive_base_forms(WordIndex(small), "")
    with pytest.raises(UsageError):
        lock_base_form(WordIndex(small), "two words")


@pytest.mark.parametrize(
    ("language", "form", "base"),
    [("cs", "katedře", "katedra"), ("sk", "knihou", "kniha"), ("ru", "газетой", "газета"), ("en", "pages", "page"),
     ("ru", "отчётом", "отчет"), ("de", "häuser", "haus"), ("xx", "pages", "pages"), ("cs", "lt0001x01", "lt0001x01"),
     ("cs", "hodinku", "hodinka"), ("cs", "válečníci", "válečník"), ("cs", "kontaktuje", "kontaktovat"),
     ("cs", "napadat", "napadat"), ("cs", "velkou", "velký"), ("cs", "nalezena", "nalézt"), ("cs", "plány", "plán"),
     ("cs", "vystavěna", "vystavět"), ("cs", "milenec", "milenec"), ("cs", "vrcholek", "vrcholek"),
     ("cs", "virtuálního", "virtuální"), ("cs", "skříní", "skříň"), ("cs", "kladna", "kladno"),
     ("cs", "česky", "český"), ("sk", "slovensku", "slovensko"), ("cs", "zdravě", "zdravý"),
     ("cs", "bytostí", "bytost"), ("cs", "záři", "záře")],
)  # fmt: skip
def test_base_forms_come_from_dictionaries(language: str, form: str, base: str) -> None:
    assert BaseForms(SearchSettings()).of(language)[form] == base


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_lowering_keeps_every_character_at_its_place(text: str) -> None:
    assert len(lowered(text)) == len(text)
    assert split_words(nfc(text)) == split_words(lowered(nfc(text)))
