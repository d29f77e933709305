"""A map speaks the language of the site whose visitors read it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from served_archive import at, look

from letopis import extract
from letopis.archive import Archive
from letopis.index import map_formats
from letopis.index.link_index import LinkIndex
from letopis.index.map_formats import MAP_FORMATS, MAP_TEXTS, MapLanguage, type_word
from letopis.index.site_maps import site_map
from letopis.model import to_millis

CZECH = "<html lang=cs><title>Domů</title><p>Vítejte na stránkách malého města u řeky.</p>{links}<img src=/a.png>"
ENGLISH = CZECH.replace("lang=cs", "lang=en").replace("Vítejte na stránkách malého města u řeky", "Welcome to a town")


def maps(folder: Path, page: str) -> dict[str, str]:
    """The map of a little site in every format for people."""
    links = "".join(f'<a href="/{name}">{name}</a>' for name in ("one", "gone", "paper.pdf"))
    with Archive(folder, clock=lambda: at(100)) as archive:
        for name, text in (("", page.format(links=links)), ("one", page.format(links=""))):
            url = f"http://town.example/{name}"
            observed = look(url, at(1), text.encode())
            archive.record([observed._replace(page=extract.read_page(text.encode(), url, observed.response.headers))])
        archive.record([look("http://town.example/gone", at(2), b"", 404)])
        pdf = look("http://town.example/paper.pdf", at(2), b"%PDF-1.4", headers=(("Content-Type", "application/pdf"),))
        archive.record([pdf])
        index = LinkIndex(archive)
        index.catch_up()
        found = site_map(index.graph(), "town.example", to_millis(at(50)))
        return {form: "".join(MAP_FORMATS[form].write(found)) for form in ("html", "svg", "snippet")}


def test_the_map_of_a_czech_site_is_czech(tmp_path: Path) -> None:
    drawn = maps(tmp_path / "archive", CZECH)
    assert '<html lang="cs">' in drawn["html"]
    assert "Mapa webu town.example" in drawn["html"]
    plain = re.sub(r"<style>.*?</style>|<[^>]*>", " ", drawn["html"], flags=re.DOTALL)
    english = {
        word for text in MAP_TEXTS["cs"] for word in re.findall(r"[a-z]{3,}", re.sub(r"{\w+}", "", text.lower()))
    }
    same = {word for czech in MAP_TEXTS["cs"].values() for word in re.findall(r"\w+", czech.lower())}
    assert not (english - same) & set(re.findall(r"[^\W\d_]+", plain.lower()))
    for form in ("svg", "snippet"):
        assert "Mapa webu town.example" in drawn[form]


def test_the_map_of_any_other_site_is_english(tmp_path: Path) -> None:
    drawn = maps(tmp_path / "archive", ENGLISH)
    assert '<html lang="en">' in drawn["html"]
    assert "Map of town.example" in drawn["html"]
    assert "1 image" in drawn["html"]


def said() -> set[str]:
    """Every text that the module hands to `say`, and the words of kinds and legends."""
    tree = ast.parse(Path(map_formats.__file__).read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    spoken = [node for node in calls if getattr(node.func, "attr", getattr(node.func, "id", "")) == "say"]
    inside = {part.value for node in spoken for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)}
    legend = {"levels", "together", "languages", "images shown", "with errors", "pages"}
    kinds = {type_word(start) for start, _ in map_formats._TYPE_WORDS} | {type_word("application/x-odd")}
    return {text for text in inside if isinstance(text, str)} | legend | (kinds - {"page"})


@pytest.mark.parametrize("code", MAP_TEXTS)
def test_every_text_of_a_map_has_its_form_and_none_is_stale(code: str) -> None:
    assert said() == set(MAP_TEXTS[code])
    for text, other in MAP_TEXTS[code].items():
        assert re.findall(r"{\w+}", text) == re.findall(r"{\w+}", other)
    assert MapLanguage(code).say("{n} below", n=3) == MAP_TEXTS[code]["{n} below"].format(n=3)
