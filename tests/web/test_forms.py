"""What people can change through pages, and who may."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from served_archive import WebClient, at, running
from signed_in import FORM, Person, add_people

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts
from letopis.config import ServeSettings, Settings
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as opened:
        add_people(opened)
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def send(web: WebClient, path: str, cookie: str = "", **fields: str | list[str]) -> tuple[int, str]:
    answer = web.ask("POST", path, urlencode(fields, doseq=True), Content_Type=FORM, Cookie=cookie)
    return answer.status, answer.headers.get("location", answer.text)


def sign_in(web: WebClient, name: str) -> tuple[str, str]:
    """The session cookie and the token of its forms."""
    person = Person(web, name)
    return person.cookie, person.csrf


def test_a_watch_is_added_and_removed_by_somebody_with_an_account(web: WebClient, archive: Archive) -> None:
    cookie, csrf = sign_in(web, "uwe")
    url = "http://example.org/"
    fields = {"url": url, "every": "2h", "css": "main", "when": "changed,unavailable:3", "csrf": csrf}
    assert send(web, "/watches", cookie, **fields) == (303, "/watches/1?done=added")
    watch = WatchList(archive).entries()[0].watch
    assert (watch.url, watch.every, watch.filters, watch.origin) == (url, 7200.0, (("css", "main"),), "http")
    assert '<span class="nowrap">every 2 h</span>' in web.get("/watches", Cookie=cookie).text
    asked = send(web, "/watches/many", cookie, url=url, action="remove", csrf=csrf)
    assert asked[0] == 200
    assert "Remove 1 watch?" in asked[1]
    assert len(WatchList(archive).entries()) == 1
    sure = send(web, "/watches/many", cookie, url=url, action="remove", confirmed="1", csrf=csrf)
    assert sure == (303, "/watches?done=removed")
    assert WatchList(archive).entries() == []


def test_several_watches_rest_go_on_and_change_their_tag_at_once(web: WebClient, archive: Archive) -> None:
    cookie, csrf = sign_in(web, "uwe")
    urls = [f"http://example.org/{number}" for number in range(3)]
    assert send(web, "/watches", cookie, url="\n".join(urls), csrf=csrf)[0] == 303
    chosen = {"url": urls[:2], "csrf": csrf}
    assert send(web, "/watches/many", cookie, action="pause", **chosen)[0] == 303
    assert [entry.paused for entry in WatchList(archive).entries()] == [True, True, False]
    assert web.get("/watches", Cookie=cookie).text.count(">paused<") == 2
    assert send(web, "/watches/many", cookie, action="resume", **chosen)[0] == 303
    assert not any(entry.paused for entry in WatchList(archive).entries())
    assert send(web, "/watches/many", cookie, action="tag", tag="news", **chosen)[0] == 303
    assert [entry.watch.tag for entry in WatchList(archive).entries()] == ["news", "news", ""]
    assert web.get("/watches?tag=news", Cookie=cookie).text.count('name="url" value="') == 2


def test_an_action_without_a_choice_or_on_unknown_pages_is_told_on_the_page(web: WebClient) -> None:
    cookie, csrf = sign_in(web, "uwe")
    assert "Select at least one" in send(web, "/watches/many", cookie, action="pause", csrf=csrf)[1]
    strange = {"url": "http://example.org/none", "csrf": csrf}
    assert "is not watched" in send(web, "/watches/many", cookie, action="pause", **strange)[1]
    assert "Unknown action" in send(web, "/watches/many", cookie, action="burn", **strange)[1]


def test_a_sitemap_is_a_source_of_watches(web: WebClient, archive: Archive) -> None:
    cookie, csrf = sign_in(web, "uwe")
    fields = {"url": "http://example.org/sitemap.xml", "kind": "sitemap", "csrf": csrf}
    assert send(web, "/watches", cookie, **fields)[0] == 303
    assert WatchList(archive).entries()[0].watch.kind == "sitemap"


def test_changes_are_unread_for_each_person_until_they_open_them_or_say_so(web: WebClient, archive: Archive) -> None:
    url = "http://example.org/page"
    archive.put(url, b"<p>one</p>", at(0))
    archive.put(url, b"<p>two</p>", at(1))
    WatchList(archive).add([url], WatchSpec(every=60.0))
    uwe, csrf = sign_in(web, "uwe")
    olga, _ = sign_in(web, "olga")
    mark = 'class="dot"'
    assert mark not in web.get("/watches").text
    assert mark in web.get("/watches", Cookie=uwe).text
    for view in (f"/url/{url}", f"/compare/{url}", f"/web/*/{url}"):
        assert web.get(view, Cookie=uwe).status == 200
    assert mark in web.get("/watches", Cookie=uwe).text, "whoever looks at a page has not read its alerts"
    assert ">Read<" in web.get(f"/compare/{url}?filter=1", Cookie=uwe).text
    assert mark not in web.get("/watches", Cookie=uwe).text
    assert mark in web.get("/watches", Cookie=olga).text
    archive.put(url, b"<p>three</p>", at(2))
    assert mark in web.get("/watches", Cookie=uwe).text
    assert send(web, "/watches/many", uwe, action="read", url=url, csrf=csrf)[0] == 303
    assert mark not in web.get("/watches", Cookie=uwe).text


def test_a_wrong_watch_is_explained_on_the_page(web: WebClient, archive: Archive) -> None:
    cookie, csrf = sign_in(web, "uwe")
    cases = [
        ({"every": "often"}, 422, "not a duration"),
        ({"every": "99999d"}, 422, "ten years"),
        ({"filters": "color red"}, 422, "is not a kind of filter"),
        ({"conditions": "more-than x"}, 422, "per cent"),
        ({"url": "http://127.0.0.1/"}, 403, "private"),
        ({"notify": "file:/etc/passwd"}, 403, "of the owner"),
    ]
    for fields, wanted, sentence in cases:
        status, text = send(web, "/watches", cookie, **{"url": "http://example.org/", "csrf": csrf, **fields})
        assert (status, sentence in text) == (wanted, True), fields
    assert WatchList(archive).entries() == []


def test_words_in_place_of_an_address_are_refused_and_kept_in_the_form(web: WebClient, archive: Archive) -> None:
    uwe = Person(web, "uwe")
    status, text = uwe.send("/watches", url="https://one.example/\nnot an address")
    assert (status, "not an address" in text) == (422, True)
    assert not WatchList(archive).entries()
    assert uwe.send("/watches", url="https://one.example/ two.example\n\nintranet") == (303, "/watches?done=added")
    assert len(WatchList(archive).entries()) == 3
    status, text = uwe.send("/accounts/projects", name="reading list", urls="https://one.example/")
    assert (status, 'value="reading list"' in text, ">https://one.example/</textarea>" in text) == (422, True, True)


def test_the_form_says_all_that_other_doors_can_say(web: WebClient, archive: Archive) -> None:
    cookie, csrf = sign_in(web, "uwe")
    fields = {
        "url": "http://example.org/", "cron": "@daily", "jitter": "5m", "xpath": "//p", "csrf": csrf,
        "filters": "remove .advert\r\nexclude [0-9]+ visitors", "conditions": "adds sold out",
    }  # fmt: skip
    assert send(web, "/watches", cookie, **fields)[0] == 303
    watch = WatchList(archive).entries()[0].watch
    assert watch.filters == (("xpath", "//p"), ("remove", ".advert"), ("exclude", "[0-9]+ visitors"))
    assert (watch.cron, watch.jitter, watch.origin) == ("@daily", 300.0, "http")
    assert [(str(one.kind), one.value) for one in watch.conditions] == [("adds", "sold out")]
    assert send(web, "/watches", cookie, url="http://example.org/", every="3h", csrf=csrf)[0] == 303
    first, second = (entry.watch for entry in WatchList(archive).entries())
    assert (first.cron, len(first.filters), second.every, second.name) == ("@daily", 3, 10800.0, "2")


def test_a_used_up_quota_is_a_page_and_not_charged_for_what_is_refused(tmp_path: Path) -> None:
    settings = Settings(serve=replace(ServeSettings(), watches_a_day=1))
    with Archive(tmp_path / "archive", settings=settings, clock=lambda: at(100)) as archive, running(archive) as web:
        Accounts(archive.catalog.database).add("uwe", "user", "a long password", 0)
        cookie, csrf = sign_in(web, "uwe")
        assert send(web, "/watches", cookie, url="http://127.0.0.1/", csrf=csrf)[0] == 403
        assert send(web, "/watches", cookie, url="http://example.org/", csrf=csrf)[0] == 303
        status, text = send(web, "/watches", cookie, url="http://example.org/other", csrf=csrf)
        assert status == 429
        assert "<h1>Watches</h1>" in text
        assert "used up the 1 watches" in text


def test_nobody_changes_anything_without_an_account_or_a_token(web: WebClient, archive: Archive) -> None:
    cookie, _ = sign_in(web, "uwe")
    for path in ("/watches", "/watches/many", "/crawl"):
        assert send(web, path, url="http://example.org/")[0] == 401
        assert send(web, path, cookie, url="http://example.org/")[0] == 403
    assert WatchList(archive).entries() == []


def test_owners_alone_plan_a_crawl(web: WebClient, archive: Archive) -> None:
    cookie, csrf = sign_in(web, "uwe")
    assert send(web, "/crawl", cookie, seeds="http://example.org/", csrf=csrf)[0] == 403
    cookie, csrf = sign_in(web, "olga")
    assert send(web, "/crawl", cookie, seeds="", csrf=csrf)[0] == 422
    planned = send(web, "/crawl", cookie, seeds="http://example.org/ example.net", csrf=csrf)
    assert planned == (303, "/crawl?queued=2")
    assert archive.catalog.queues.waiting().new == 2
    page = web.get("/crawl?queued=2", Cookie=cookie).text
    assert "2 more pages wait" in page
    assert ('<a class="button" href="/jobs#start">' in page, "<textarea" in page) == (True, False)
    assert "Sign out olga" in web.get("/", Cookie=cookie).text


def test_owners_see_where_the_archive_lies_and_others_do_not(web: WebClient, archive: Archive) -> None:
    cookie, _ = sign_in(web, "olga")
    assert str(archive.folder) in web.get("/settings", Cookie=cookie).text
    assert str(archive.folder) not in web.get("/settings").text
