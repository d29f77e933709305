"""Outside judges of every page: axe-core for accessibility, vnu for HTML."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from looks import LOOKS, wear
from served_archive import Answer, WebClient

from letopis.archive import Archive
from letopis.archive.accounts import invitations_of, projects_of
from letopis.model import to_millis
from letopis_demo import World

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

SERIOUS = ("serious", "critical")
QUESTION = "/watches/many"
VIEWS = ("map", "picture", "links", "pages", "changes", "broken", "ranks", "report", "audit")


@pytest.fixture
def addresses(browsed_world: World, browsed_archive: Archive, job_page: str) -> list[str]:
    """Every page that has an address; the question before something is removed stands for itself."""
    world, home = browsed_world, browsed_world.url(0, 0)
    views = [f"/site/{world.hosts[0]}?view={view}" for view in (*VIEWS, "changes&kind=changed", "report&kind=chain")]
    compare = [f"/compare/{home}?view={view}" for view in ("words", "sides", "visual", "links", "raw", "source")]
    plain = [
        "/",
        "/search",
        "/search?q=garden",
        "/watches",
        "/watches/1",
        "/watches/1/pick",
        "/crawl",
        "/jobs",
        job_page,
        "/duplicates",
        "/storage",
    ]
    people = ["/settings", "/login", "/accounts", "/welcome", "/url/http://nowhere.example/"]
    reference = ["/docs", "/docs/search", "/docs/add_user", "/docs/import_upload", "/save", f"/save?url={home}"]
    _, token = invitations_of(browsed_archive).add("user", "", "olga", to_millis(browsed_archive.clock()), 3_600_000)
    reference += [f"/join?invitation={token}", "/settings?q=fetch&only=set"]
    captured = [f"/url/{home}", f"/web/*/{home}", f"/web/2/{home}", f"/duplicates?site={world.hosts[1]}"]
    table = f"/saved/new?question=broken&with=site%3D{world.hosts[0]}&filter=404"
    projects_of(browsed_archive).add("news", "olga", [home], 0)
    saved = ["/saved", "/saved/1", "/saved/new?q=garden", table, "/alerts", "/sites", "/projects", "/projects/news"]
    saved += ["/statistics", "/help", "/audit", "/audit?show=changes", "/?joined=1"]
    return [*plain, *people, *reference, *captured, *views, *compare, *saved, QUESTION]


BESIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
"""Pixels of a page that lie beside the window: one would have to scroll to the side."""
MOST_BYTES = 150_000


def judged(tab: Any) -> list[tuple[str, str]]:
    """Serious findings: the rule, and the first element that breaks it; the size of targets is judged too."""
    options = {"resultTypes": ["violations"], "iframes": False, "rules": {"target-size": {"enabled": True}}}
    found = tab.evaluate("options => axe.run(document, options)", options)
    return [(row["id"], row["nodes"][0]["html"]) for row in found["violations"] if row["impact"] in SERIOUS]


def go(tab: Any, address: str) -> None:
    if address != QUESTION:
        tab.goto(address)
        return
    tab.goto("/watches")
    tab.locator(".watch-rows tbody input[type=checkbox]").first.check()
    tab.get_by_role("button", name="Remove …").click()
    tab.get_by_role("heading", name="Remove 1 watch?").wait_for()


def test_axe_finds_nothing_serious_on_any_page_and_none_is_wider_than_its_window(
    chromium: Any, browsed: WebClient, addresses: list[str], signed_in: Any, axe: str
) -> None:
    context = chromium.new_context(base_url=browsed.address, bypass_csp=True)
    context.add_cookies([signed_in])
    tab = context.new_page()
    found = {}
    for address in addresses:
        go(tab, address)
        tab.evaluate(axe)
        for name, look in LOOKS.items():
            wear(tab, look)
            if serious := judged(tab):
                found[address, name] = serious
            assert tab.evaluate(BESIDE) <= 0, (address, name)
    context.close()
    assert found == {}


OPEN_ALL = """() => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  for (const button of document.querySelectorAll(".folding tr:nth-child(even) .plain")) button.click();
}"""


def test_what_a_phone_folds_is_fine_folded_and_opened(
    chromium: Any, browsed: WebClient, signed_in: Any, axe: str, job_page: str
) -> None:
    context = chromium.new_context(base_url=browsed.address, bypass_csp=True, viewport={"width": 390, "height": 800})
    context.add_cookies([signed_in])
    tab = context.new_page()
    found = {}
    for address in ("/accounts", "/projects", "/saved", "/saved/1", "/statistics", "/crawl", "/docs/search", job_page):
        tab.goto(address)
        tab.evaluate(axe)
        for state in ("folded", "opened"):
            if serious := judged(tab):
                found[address, state] = serious
            assert tab.evaluate(BESIDE) <= 0, (address, state)
            tab.evaluate(OPEN_ALL)
    context.close()
    assert found == {}


def test_a_phone_shows_two_months_of_captures_abreast(chromium: Any, browsed: WebClient, browsed_world: World) -> None:
    context = chromium.new_context(base_url=browsed.address, viewport={"width": 390, "height": 800})
    tab = context.new_page()
    tab.goto(f"/web/*/{browsed_world.url(0, 0)}")
    columns = tab.evaluate("getComputedStyle(document.querySelector('.sheets')).gridTemplateColumns.split(' ').length")
    context.close()
    assert columns == 2


def answered(web: WebClient, address: str, **headers: str) -> Answer:
    """The page behind an address, as a browser gets it."""
    if address == QUESTION:
        found = re.search(r'name="csrf" value="([^"]+)"', web.get("/watches", **headers).text)
        assert found
        fields = urlencode({"action": "remove", "url": "http://a.example/?a=1&b=2", "csrf": found[1]})
        return web.ask("POST", QUESTION, fields, Content_Type="application/x-www-form-urlencoded", **headers)
    answer = web.get(address, Sec_Fetch_Dest="document", **headers)
    return answered(web, answer.headers["location"], **headers) if answer.status == 302 else answer


def test_every_page_is_small_with_its_styles_and_scripts(
    browsed: WebClient, addresses: list[str], signed_in: Any
) -> None:
    cookie = f"{signed_in['name']}={signed_in['value']}"
    for address in addresses:
        page = answered(browsed, address, Cookie=cookie)
        parts = set(re.findall(r'(?:src|href)="(/static/[^"]+\.(?:css|js|svg|webmanifest))"', page.text))
        assert any(part.endswith(".css") for part in parts) or "/web/" in address, address
        assert len(page.body) + sum(len(browsed.get(part).body) for part in parts) < MOST_BYTES, address


@pytest.mark.parametrize("language", ["en", "cs"])
def test_vnu_finds_no_error_on_any_page(
    browsed: WebClient, addresses: list[str], signed_in: Any, vnu: list[str], tmp_path: Path, language: str
) -> None:
    cookie = f"{signed_in['name']}={signed_in['value']}"
    for number, address in enumerate(addresses):
        answer = answered(browsed, address, Cookie=cookie, Accept_Language=language)
        assert f'<html lang="{language}">' in answer.text, address
        name = "".join(letter if letter.isalnum() else "-" for letter in address)
        (tmp_path / f"{number:02}{name[:60]}.html").write_bytes(answer.body)
    command = [*vnu, "--errors-only", "--format", "json", "--exit-zero-always", *map(str, sorted(tmp_path.iterdir()))]
    said = subprocess.run(command, capture_output=True, check=True, timeout=300).stderr
    errors = [(Path(row["url"]).name, row.get("lastLine"), row["message"]) for row in json.loads(said)["messages"]]
    assert errors == []
