"""The bookmarklet and the share menu lead to a page that saves with the reader's own rights, and only when told to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from scripted_site import ScriptedSite
from served_archive import WebClient, running

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.config import FetchSettings, Settings
from letopis.web.saving import shared_address

FORM = "application/x-www-form-urlencoded"
BROWSER = {"Accept": "text/html"}
PAGE = b"<title>Shared</title><p>A page that somebody was at when they thought of keeping it.</p>"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", settings=Settings(fetch=FetchSettings(private="always"))) as opened:
        for name, role in (("uwe", "user"), ("gabi", "guest")):
            accounts_of(opened).add(name, role, "a long password", 0)
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def session(web: WebClient, name: str) -> dict[str, str]:
    answer = web.ask("POST", "/login", urlencode({"name": name, "password": "a long password"}), Content_Type=FORM)
    cookies = [value.partition(";")[0] for field, value in answer.all_headers if field == "set-cookie"]
    return {"Cookie": "; ".join(cookies), **BROWSER}


def token(web: WebClient, signed_in: dict[str, str]) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', web.get("/save?url=http://a.example/", **signed_in).text)
    assert found
    return found[1]


def asked(site: ScriptedSite) -> int:
    return sum(path == "/kept" for _, path, _ in site.log)


def test_the_page_somebody_is_at_is_saved_by_one_more_click_and_never_by_reading(
    web: WebClient, archive: Archive, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/kept", PAGE)
    uwe = session(web, "uwe")
    shown = web.get(f"/save?url={quote(url, safe='')}", **uwe).text
    assert "not in the archive yet" in shown
    assert asked(scripted_site) == 0
    csrf = re.search(r'name="csrf" value="([^"]+)"', shown)
    assert csrf
    stolen = web.ask("POST", "/save", urlencode({"url": url}), Content_Type=FORM, **uwe)
    foreign = {**uwe, "Origin": "http://evil.example"}
    forged = web.ask("POST", "/save", urlencode({"url": url, "csrf": csrf[1]}), Content_Type=FORM, **foreign)
    assert (stolen.status, forged.status, asked(scripted_site)) == (403, 403, 0)
    saved = web.ask("POST", "/save", urlencode({"url": url, "csrf": csrf[1]}), Content_Type=FORM, **uwe)
    assert (saved.status, archive.get(url).body) == (303, PAGE)
    assert "already in the archive" in web.get(f"/save?url={quote(url, safe='')}", **uwe).text


def test_what_was_saved_is_said_with_a_link_to_the_new_version(web: WebClient, scripted_site: ScriptedSite) -> None:
    url, uwe = scripted_site.set("/told", PAGE), session(web, "uwe")
    form = urlencode({"url": url, "csrf": token(web, uwe)})
    for said in ("Saved: <a href=", "Checked just now: still <a href="):
        answer = web.ask("POST", "/save", form, Content_Type=FORM, **uwe)
        assert answer.headers["location"] == f"/url/{url}?saved.now=1"
        shown = web.get(answer.headers["location"], **uwe).text
        assert said in shown
        assert re.search(rf'href="/web/\d+/{re.escape(url)}">version 0 from ', shown)
    gone = scripted_site.set("/gone", b"", 404)
    answer = web.ask("POST", "/save", urlencode({"url": gone, "csrf": token(web, uwe)}), Content_Type=FORM, **uwe)
    assert "Could not be saved: " in web.get(answer.headers["location"], **uwe).text


def test_a_page_is_saved_with_its_pictures_or_with_the_pages_it_links_to(
    web: WebClient, archive: Archive, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/kept", b"<title>Shared</title><p>A page with a picture.</p><img src=/drawn.png>")
    picture = scripted_site.set("/drawn.png", b"\x89PNG", Content_Type="image/png")
    uwe = session(web, "uwe")
    shown = web.get(f"/save?url={quote(url, safe='')}", **uwe).text
    csrf = re.findall(r'name="csrf" value="([^"]+)"', shown)[0]
    form = {"url": url, "csrf": csrf, "requisites": "1"}
    assert web.ask("POST", "/save", urlencode(form), Content_Type=FORM, **uwe).status == 303
    assert archive.get(picture).body == b"\x89PNG"
    run = dict(re.findall(r'name="(kind|site|scope|depth|limit)" value="([^"]+)"', shown)) | form
    started = web.ask("POST", "/jobs/start", urlencode(run), Content_Type=FORM, **uwe)
    assert (started.status, "/jobs/" in started.headers["location"]) == (303, True)


def test_an_address_that_is_none_comes_back_in_the_form(web: WebClient) -> None:
    uwe = session(web, "uwe")
    form = urlencode({"csrf": token(web, uwe), "url": "no address"})
    answer = web.ask("POST", "/save", form, Content_Type=FORM, **uwe)
    assert (answer.status, answer.headers["location"]) == (303, "/save?url=no+address")
    page = web.get(answer.headers["location"], **uwe).text
    assert "This is not the address of a web page." in page
    assert 'value="no address"' in page


def test_whoever_may_not_save_is_told_so(web: WebClient) -> None:
    shown = web.get("/save?url=http://example.org/", **session(web, "gabi")).text
    assert "Your account is not allowed to do this" in shown
    assert 'action="/save"><input type="hidden" name="csrf"' not in shown
    assert "/login?next=/url/http://example.org/" in web.get("/save?url=http://example.org/", **BROWSER).text


def test_the_manifest_has_a_share_target_that_is_answered(web: WebClient) -> None:
    manifest = json.loads(web.get("/static/letopis.webmanifest").text)
    target = manifest["share_target"]
    assert (target["method"], target["action"]) == ("GET", "/save")
    asked = urlencode({target["params"]["text"]: "Look: https://example.org/a?b=c !", target["params"]["url"]: ""})
    assert "https://example.org/a?b=c" in web.get(f"{target['action']}?{asked}", **BROWSER).text
    assert 'rel="manifest" href="/static/letopis.webmanifest"' in web.get("/", **BROWSER).text


def test_the_bookmarklet_leads_to_this_service_and_does_nothing_else(web: WebClient) -> None:
    found = re.search(r'href="(javascript:[^"]+)"', web.get("/save", **BROWSER).text)
    assert found
    assert unescape(found[1]) == f"javascript:location.href='{web.address}/save?url='+encodeURIComponent(location.href)"


@pytest.mark.parametrize(
    ("url", "text", "meant"),
    [
        ("https://example.org/", "", "https://example.org/"),
        ("", "A title https://example.org/x and more", "https://example.org/x"),
        ("not an address at all", "http://example.org/", "http://example.org/"),
        ("javascript:alert(1)", "", ""),
        ("", "nothing", ""),
    ],
)
def test_the_address_is_found_wherever_an_app_puts_it(url: str, text: str, meant: str) -> None:
    assert shared_address(url, text) == meant
