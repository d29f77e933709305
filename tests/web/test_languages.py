"""Every text of the pages in every language, and which language a reader gets."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from jinja2 import nodes
from served_archive import WebClient

from letopis import web
from letopis.config import settings_table
from letopis.errors import Damaged
from letopis.web.languages import (
    CZECH,
    ENGLISH,
    preferred_language,
    read_translations,
    translate,
    translate_count,
    use_language,
)
from letopis.web.pages import environment, human_size, share
from letopis_demo import World

VIEWS = ("map", "picture", "links", "pages", "changes", "broken", "ranks", "report", "audit")
SERVE = Path(web.__file__).parent


def said_in_templates() -> Iterator[tuple[str, ...]]:
    """Arguments of every `_(...)` and `n_(...)`: one text, or two with a number."""
    for name in environment.list_templates():
        source = (SERVE / "templates" / name).read_text("utf-8")
        for call in environment.parse(source).find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name in ("_", "n_"):
                texts = [one.value for one in call.args if isinstance(one, nodes.Const)]
                if texts:
                    yield tuple(texts[: 1 if call.node.name == "_" else 2])


def marked_in_code() -> Iterator[tuple[str, ...]]:
    for path in (*SERVE.rglob("*.py"), *(SERVE.parent / "replay").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "translatable":
                assert isinstance(node.args[0], ast.Constant)
                yield (str(node.args[0].value),)


def said_of_settings() -> Iterator[tuple[str, ...]]:
    """What the page of settings says of each, which the engine words."""
    yield from ((setting.help,) for setting in settings_table().values())


ALL = {*said_in_templates(), *marked_in_code(), *said_of_settings()}


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_text_has_a_czech_form_and_no_czech_text_is_stale() -> None:
    known = {(text,) for text in CZECH.known.texts} | set(CZECH.known.plurals)
    assert len(ALL) > 300
    assert ALL - known == set()
    assert known - ALL == set()


def test_czech_texts_keep_the_places_of_their_values_and_have_all_plural_forms() -> None:
    for text, czech in CZECH.known.texts.items():
        assert czech
        assert places(czech) == places(text), text
    for (_, many), forms in CZECH.known.plurals.items():
        assert len(forms) == 3
        assert places(forms[2]) == places(many), many


def test_no_visible_word_of_a_template_is_left_out() -> None:
    """Whatever stands between tags comes from a text, a value, or is a name that no language changes."""
    fixed = {"Letopis", "API", "CSV", "JSON", "TimeMap", "xml", "v", "s", "GET", "curl", "Python", "UTC"}
    for name in environment.list_templates():
        source = (SERVE / "templates" / name).read_text("utf-8")
        plain = re.sub(
            r"<code>.*?</code>|<style>.*?</style>|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>|&\w+;",
            " ",
            source,
            flags=re.DOTALL,
        )
        assert set(re.findall(r"[^\W\d_]+", plain)) <= fixed, name


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 stránek"),
        (1, "1 stránka"),
        (2, "2 stránky"),
        (4, "4 stránky"),
        (5, "5 stránek"),
        (1234, "1\u202f234 stránek"),
    ],
)
def test_czech_plural_forms(count: int, text: str) -> None:
    with use_language(CZECH):
        assert translate_count("{n} page", "{n} pages", count) == text


def test_english_is_the_text_itself_and_values_are_escaped() -> None:
    assert translate_count("{n} page", "{n} pages", 1) == "1 page"
    assert translate("Open {page}", page="<b>") == "Open &lt;b&gt;"
    with use_language(CZECH):
        assert (human_size(1500), share(0.125)) == ("1,5 kB", "12,5\u00a0%")
    assert human_size(1500) == "1.5 kB"


@pytest.mark.parametrize(
    ("header", "code"),
    [("", "en"), ("cs", "cs"), ("cs-CZ,cs;q=0.9,en;q=0.8", "cs"), ("en,cs;q=0.9", "en"), ("de,cs;q=0.2", "cs"),
     ("cs;q=0", "en"), ("*", "en"), ("cs;q=x", "en")],
)  # fmt: skip
def test_the_browser_tells_the_language(header: str, code: str) -> None:
    assert preferred_language(header).code == code


@given(st.text(max_size=60))
@hypothesis_settings(max_examples=100, deadline=None)
def test_any_header_gives_a_language(header: str) -> None:
    assert preferred_language(header) in (ENGLISH, CZECH)


def test_a_choice_in_the_footer_holds_and_leads_back(pages: WebClient) -> None:
    assert '<html lang="cs">' in pages.get("/", Accept_Language="cs").text
    answer = pages.get("/language/cs?back=/search%3Fq%3Dgarden", Accept_Language="en")
    assert (answer.status, answer.headers["location"]) == (303, "/search?q=garden")
    cookie = answer.headers["set-cookie"].partition(";")[0]
    czech = pages.get("/search?q=garden", Accept_Language="en", Cookie=cookie)
    assert '<html lang="cs">' in czech.text
    assert czech.headers["content-language"] == "cs"
    assert "Hledat" in czech.text
    assert pages.get("/language/en?back=//evil.example/").headers["location"] == "/"
    assert pages.get("/language/xx").status == 404


def test_every_page_can_be_read_in_czech(pages: WebClient, little_world: World) -> None:
    home, site = little_world.url(0, 0), f"/site/{little_world.hosts[0]}"
    views = [
        f"{site}?view={view}"
        for view in ("map", "picture", "links", "pages", "changes", "broken", "ranks", "report", "audit")
    ]
    compare = [f"/compare/{home}?view={view}" for view in ("words", "sides", "visual", "links", "raw")]
    plain = ["/", "/search", "/watches", "/crawl", "/jobs", "/duplicates", "/storage", "/settings", "/login"]
    for address in (*plain, f"/url/{home}", *views, *compare):
        answer = pages.get(address, Accept_Language="cs")
        assert answer.status == 200, address
        assert '<html lang="cs">' in answer.text
        assert "Přehled" in answer.text, address


def test_settings_are_explained_in_czech(pages: WebClient) -> None:
    page = pages.get("/settings", Accept_Language="cs").text.partition("<main")[2]
    assert "Složka archivu" in page
    for setting in settings_table().values():
        assert f">{setting.help[:1].upper()}{setting.help[1:]}<" not in page, setting.name


def test_a_damaged_catalogue_names_its_line(tmp_path: Path) -> None:
    broken = tmp_path / "xx.po"
    broken.write_text('msgid "a"\nmsgstr "b"\nnonsense\n')
    with pytest.raises(Damaged, match="line 3"):
        read_translations(broken)
    broken.write_text('msgid ""\n"two "\n"lines"\nmsgstr "dva"\n" řádky"\n')
    assert read_translations(broken).texts == {"two lines": "dva řádky"}
