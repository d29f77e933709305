"""Which pages are scrolled through window by window before they are kept: all that may load more on the way."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from patience import UNHURRIED
from scripted_site import ScriptedSite

from letopis import Archive, Monitor
from letopis.config import FetchSettings, MonitorSettings, Settings
from letopis.fetch.page_rendering import may_wait_for_readers, page_may_wait_for_readers

HAS_CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
HEAD = "<!doctype html><title>Long</title>" + "".join(f"<p id=p{n} style='height: 700px'>{n}" for n in range(12))
LOADERS = {
    "an observer": """new IntersectionObserver(all => all.forEach(one => one.isIntersecting && load(one.target.id)))
        .observe(document.getElementById("p6"))""",
    "a listener": """addEventListener("scroll", () => { const at = p6.getBoundingClientRect();
        if (at.top < innerHeight && at.bottom > 0) load("p6"); })""",
    "a loop": """(function look() { const at = p6.getBoundingClientRect();
        if (at.top < innerHeight && at.bottom > 0) load("p6"); else requestAnimationFrame(look); })()""",
}


@pytest.mark.parametrize("text", [
    b"<img loading=LAZY src=a.png>", b"<body onscroll='more()'>", b"new IntersectionObserver(show)",
    b"setInterval(look, 300)", b"section { content-visibility: auto }", b"new Function('return 1')()",
    b"eval(text)", b"window['\\x73croll']", b"window['\\u0073croll']", b"import('./more.js')",
    "<p onscroll=a()>".encode("utf-16"), b"<script src='data:text/javascript;base64,YQ=='></script>",
    b"a" * 300_000,
])  # fmt: skip
def test_a_text_that_may_wait_for_readers_is_taken_for_one(text: bytes) -> None:
    assert may_wait_for_readers(text)


def test_a_page_of_text_with_small_scripts_waits_for_nobody() -> None:
    assert not may_wait_for_readers(b"<!doctype html><p>Council approves the budget<script src=/menu.js></script>")
    assert not may_wait_for_readers(
        b"document.querySelector('nav').addEventListener('click', function () { open = !open })"
    )
    assert not may_wait_for_readers(b"body { color: black; background: url(paper.png) }")


def test_what_browsers_load_late_by_themselves_waits_for_nobody_unless_its_size_or_place_does() -> None:
    late = b"<p>budget<img loading=lazy src=a.png><iframe src=b loading='LAZY'></iframe>"
    assert not page_may_wait_for_readers(late)
    assert page_may_wait_for_readers(late + b"<img class=lazy data-src=c.png>")
    assert page_may_wait_for_readers(late + b"<img loading=lazy sizes='auto, 100vw' srcset='a.png 100w'>")
    assert page_may_wait_for_readers(late + b"<iframe srcdoc='<img loading=lazy src=d.png>'></iframe>")
    assert page_may_wait_for_readers(b"<template shadowrootmode=open><img loading=lazy src=a.png></template>")


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.skipif(not HAS_CHROMIUM, reason="NO CHROMIUM: browser checks did not run; 'make browser' installs it")
def test_what_browsers_load_late_is_loaded_where_readers_would_see_it_and_says_so_still(
    tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    late = "<img loading=Lazy src=/seen.png><iframe loading=lazy src=/frame></iframe>"
    hidden = "<div style='display: none'><img loading=lazy src=/hidden.png></div>"
    url = scripted_site.set("/", HEAD.replace("<p id=p6", f"{late}{hidden}<p id=p6").encode())
    inner = f"{HEAD}<script>{LOADERS['an observer'].replace('load(', 'fetch(')}</script>"
    scripted_site.set("/frame", inner.encode())
    settings = Settings(capture=UNHURRIED, fetch=FetchSettings(private="always"), monitor=MonitorSettings())
    with Archive(tmp_path / "a", settings=settings) as archive:
        with Monitor(archive) as monitor:
            monitor.look([url], monitor.options._replace(now=True, browser=True))
        (found,) = archive.sets.of(url)
        paths = {member.url.rpartition("/")[2] for member in archive.sets.members(found)}
        assert late.encode() in archive.get(url).body.replace(b'"', b"")
    assert paths == {"seen.png", "frame"}


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.skipif(not HAS_CHROMIUM, reason="NO CHROMIUM: browser checks did not run; 'make browser' installs it")
@pytest.mark.parametrize("inside", [True, False], ids=["in the page", "in a file"])
@pytest.mark.parametrize("loader", LOADERS)
def test_what_waits_in_the_middle_of_a_page_is_loaded(
    tmp_path: Path, scripted_site: ScriptedSite, loader: str, inside: bool
) -> None:
    script = f"const load = id => {{ new Image().src = `/${{id}}.png`; }};{LOADERS[loader]}"
    scripted_site.set("/p6.png", b"picture", Content_Type="image/png")
    scripted_site.set("/app.js", script.encode(), Content_Type="text/javascript")
    url = scripted_site.set(
        "/", (HEAD + (f"<script>{script}</script>" if inside else "<script src=/app.js></script>")).encode()
    )
    settings = Settings(monitor=MonitorSettings(min_interval=0), fetch=FetchSettings(total=90, retries=0))
    with (
        Archive(tmp_path / "a", settings=replace(settings, capture=replace(UNHURRIED, screenshot="none"))) as archive,
        Monitor(archive) as monitor,
    ):
        monitor.look([url], monitor.options._replace(now=True, browser=True))
        assert archive.get(scripted_site.url("/p6.png")).body == b"picture"
