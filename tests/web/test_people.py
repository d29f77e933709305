"""Accounts, tokens, projects and the first start, through pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest
from remembered_world import saved_search
from served_archive import WebClient, at, running
from signed_in import FORM, Person, add_people

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of, projects_of
from letopis.archive.audit import UseCounter, audit_entries
from letopis.archive.watches import AlertRow, NewAlert, watches_of
from letopis.catalog.accounts import Accounts
from letopis.model import rfc3339
from letopis.monitor.watch import WatchSpec, parse_alert_rules
from letopis.monitor.watch_list import WatchList
from letopis.operations import Context
from letopis.operations.operation import all_operations
from letopis.operations.runs import StartRun, start_run
from letopis.web.audit_names import AUDIT_NAMES, AuditedThing, audited_things

WORD = "a long password"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as opened:
        add_people(opened)
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def test_an_owner_resets_a_lost_password_and_their_own_takes_the_old_one(web: WebClient, archive: Archive) -> None:
    olga = Person(web, "olga")
    assert olga.send("/accounts/users/password", name="uwe", password="another password") == (
        303, "/accounts?done=password",
    )  # fmt: skip
    assert accounts_of(archive).sign_in("uwe", "another password") is not None
    status, shown = olga.send("/accounts/users/password", name="olga", password="another password")
    assert (status, "with the old one" in shown) == (422, True)
    assert accounts_of(archive).sign_in("olga", WORD) is not None
    assert ("olga", "password set") in [(row.who, row.action) for row in audit_entries(archive, 5)]


def test_an_owner_adds_people_and_removes_them(web: WebClient, archive: Archive) -> None:
    olga = Person(web, "olga")
    assert olga.send("/accounts/users", name="eva", role="guest", password=WORD) == (303, "/accounts?done=user")
    assert Accounts(archive.catalog.database).user("eva").role == "guest"
    assert "eva" in olga.see("/accounts")
    status, text = olga.send("/accounts/users", name="eva", role="guest", password=WORD)
    assert (status, "An account named eva already exists" in text) == (422, True)
    assert olga.send("/accounts/users/remove", name="eva")[0] == 303
    assert "only owner" in olga.send("/accounts/users/remove", name="olga")[1]
    assert [user.name for user in Accounts(archive.catalog.database).users()] == ["olga", "uwe"]


def test_others_see_and_change_only_what_is_theirs(web: WebClient, archive: Archive) -> None:
    uwe = Person(web, "uwe")
    assert uwe.send("/accounts/users", name="eva", role="owner", password=WORD)[0] == 403
    Accounts(archive.catalog.database).create_token("secret-one", None, "read", 0)
    assert "secret-one" not in uwe.see("/accounts")
    assert "you have no token" in uwe.send("/accounts/tokens/revoke", name="secret-one")[1].lower()
    assert web.get("/accounts").status == 401
    assert web.get("/accounts", Accept="text/html").headers["location"] == "/login?next=/accounts"
    told = "This page needs an account; you are led to it after signing in."
    assert (told in web.get("/login?next=/accounts").text, told in web.get("/login").text) == (True, False)


def test_a_token_is_told_once_works_and_can_be_revoked(web: WebClient) -> None:
    uwe = Person(web, "uwe")
    status, text = uwe.send("/accounts/tokens", name="robot", scope="write")
    assert status == 200
    found = re.search(r'<code class="secret">([^<]+)</code>', text)
    assert found
    head = {"Authorization": f"Bearer {found[1]}"}
    assert web.get("/api/v1/tokens", **head).status == 200
    assert found[1] not in uwe.see("/accounts")
    status, refused = uwe.send("/accounts/tokens", name="robot", scope="read")
    above, _, beside = refused.partition("<h3>New token</h3>")
    told = "A token named robot already exists"
    assert (status, told in above, told in beside) == (422, False, True)
    assert uwe.send("/accounts/tokens/revoke", name="robot") == (303, "/accounts?done=token-revoked")
    assert web.get("/api/v1/tokens", **head).status == 401


def test_projects_are_kept_and_forgotten(web: WebClient) -> None:
    uwe = Person(web, "uwe")
    made = uwe.send("/accounts/projects", name="news", urls="http://example.org/ http://example.org/a")
    assert made == (303, "/projects/news?done=project")
    assert re.search(
        r'news</strong>.*?<td data-label="Pages" class="right">2</td>', web.get("/projects").text, re.DOTALL
    )
    page = web.get("/projects/news").text
    assert "http://example.org/a" in page
    assert "/accounts/projects/remove" not in page
    taken_out = uwe.send("/accounts/projects/remove", name="news", url="http://example.org/a")
    assert taken_out == (303, "/projects/news?done=project-pages-removed")
    assert "http://example.org/a" not in uwe.see("/projects/news")
    assert Person(web, "olga").send("/accounts/projects/remove", name="news")[0] == 303
    assert web.get("/projects/news").status == 404


def test_a_project_takes_sites_folders_and_crawls_from_its_form(web: WebClient) -> None:
    uwe = Person(web, "uwe")
    for name in ("site", "prefix", "crawl"):
        assert f'name="{name}"' in uwe.see("/projects")
    parts = {"site": "example.org example.net", "prefix": "http://example.com/press/"}
    assert uwe.send("/accounts/projects", name="parts", urls="", crawl="", **parts)[0] == 303
    page = uwe.see("/projects/parts")
    for part in ("example.org", "example.net", "http://example.com/press/"):
        assert part in page
    status, text = uwe.send("/accounts/projects", name="parts", crawl="http://nowhere.example/")
    assert (status, "No crawl begins at" in text, "<h1>Projects</h1>" in text) == (404, True, True)
    assert uwe.send("/accounts/projects/remove", name="parts", site="example.net")[0] == 303
    assert "example.net" not in uwe.see("/projects/parts")


def test_projects_are_shared_by_a_group_and_open_to_owners(web: WebClient, archive: Archive) -> None:
    accounts_of(archive).add("eva", "user", WORD, 0, group="editors")
    accounts_of(archive).add("jan", "user", WORD, 0)
    accounts_of(archive).set_group("uwe", "editors")
    Person(web, "uwe").send("/accounts/projects", name="news", urls="a.example")
    assert Person(web, "eva").send("/accounts/projects", name="news", urls="b.example")[0] == 303
    assert Person(web, "olga").send("/accounts/projects", name="news", urls="c.example")[0] == 303
    status, text = Person(web, "jan").send("/accounts/projects", name="news", urls="d.example")
    assert (status, "belongs to somebody else" in text) == (403, True)
    assert Person(web, "jan").send("/accounts/projects/remove", name="news")[0] == 403
    kept = projects_of(archive).show("news")
    assert (kept.owner, len(kept.urls)) == ("uwe", 3)


def test_owners_change_roles_and_groups(web: WebClient, archive: Archive) -> None:
    olga = Person(web, "olga")
    assert olga.send("/accounts/users/role", name="uwe", role="guest") == (303, "/accounts?done=role")
    assert olga.send("/accounts/users/group", name="uwe", group="editors") == (303, "/accounts?done=group")
    assert (accounts_of(archive).user("uwe").role, accounts_of(archive).user("uwe").team) == ("guest", "editors")
    assert olga.send("/accounts/users/group", name="uwe", group="")[0] == 303
    assert accounts_of(archive).user("uwe").team == ""
    assert "only owner" in olga.send("/accounts/users/role", name="olga", role="user")[1]
    assert olga.send("/accounts/users/role", name="nobody", role="user")[0] == 404
    assert "role changed" in olga.see("/audit")


def test_a_change_through_a_page_is_audited_once_with_its_address(web: WebClient, archive: Archive) -> None:
    Person(web, "olga").send("/accounts/users", name="eva", role="guest", password=WORD)
    rows = [row for row in audit_entries(archive, 10) if row.action == "user added"]
    assert [(row.who, row.subject, row.address) for row in rows] == [("olga", "eva guest", "127.0.0.1")]


def test_a_password_keeps_its_blanks(web: WebClient, archive: Archive) -> None:
    uwe = Person(web, "uwe")
    assert uwe.send("/accounts/password", old=WORD, new="  blanks around  ")[0] == 303
    assert accounts_of(archive).sign_in("uwe", "  blanks around  ") is not None


def test_a_password_changes_for_whoever_knows_the_old_one(web: WebClient) -> None:
    uwe = Person(web, "uwe")
    assert "current password is wrong" in uwe.send("/accounts/password", old="guess", new="another password")[1]
    assert uwe.send("/accounts/password", old=WORD, new="another password")[0] == 303
    assert web.get("/accounts", Cookie=uwe.cookie).status == 401


def test_the_language_of_an_account_holds_in_every_browser_until_another_is_chosen_there(web: WebClient) -> None:
    uwe = Person(web, "uwe")
    assert uwe.send("/accounts/language", language="cs") == (303, "/accounts?done=language")
    assert '<html lang="cs">' in uwe.see("/")
    here = web.get("/", Cookie=f"{uwe.cookie}; letopis_language=en")
    assert '<html lang="en">' in here.text
    assert uwe.send("/accounts/language", language="xx")[0] == 422


def test_the_first_start_leads_from_the_owner_to_the_first_watch(tmp_path: Path) -> None:
    with Archive(tmp_path / "new", clock=lambda: at(100)) as archive, running(archive) as web:
        assert "Welcome to Letopis" in web.get("/").text
        assert 'aria-current="step">Owner' in web.get("/login").text
        assert web.get("/welcome", Accept="text/html").headers["location"] == "/login?next=/welcome"
        Accounts(archive.catalog.database).add("olga", "owner", WORD, 0)
        olga = Person(web, "olga")
        assert str(archive.folder) in olga.see("/welcome")
        assert "not a" in olga.send("/welcome", url="", what="watch")[1]
        assert olga.send("/welcome", url="http://example.org/", what="watch") == (303, "/watches/1?done=added")
        assert WatchList(archive).entries()[0].watch.every == 3600.0
        WatchList(archive).pause(["1"])
        again = olga.send("/welcome", url="http://example.org/", what="watch", every="7d")
        assert again == (303, "/watches/1?done=kept")
        assert "is already watched; its watch was not changed" in olga.see(again[1])
        (entry,) = WatchList(archive).entries()
        assert (entry.watch.every, entry.paused, entry.watch.owner) == (3600.0, True, "olga")
        assert olga.send("/welcome", url="http://example.org/", what="crawl") == (
            303,
            "/jobs?site=http%3A%2F%2Fexample.org%2F#start",
        )
        assert 'value="http://example.org/"' in olga.see("/jobs?site=http%3A%2F%2Fexample.org%2F")


def test_a_refused_first_page_keeps_all_that_was_chosen(web: WebClient) -> None:
    status, shown = Person(web, "olga").send("/welcome", url="no address", what="crawl", every="7d")
    assert status == 422
    assert 'value="no address"' in shown
    assert 'value="crawl" checked' in shown
    assert '<option value="7d" selected>' in shown
    assert shown.count(" selected>") == 1


def test_storage_tells_quotas_and_owners_the_room_on_disk(web: WebClient) -> None:
    text = Person(web, "olga").see("/storage")
    assert "store.max_bytes" in text
    assert "Used on this disk" in text
    assert "Used on this disk" not in web.get("/storage").text


def test_a_crawl_of_an_address_that_is_not_public_is_refused_on_the_page(web: WebClient) -> None:
    status, text = Person(web, "olga").send("/crawl", seeds="http://127.0.0.1:9/")
    assert status == 403
    assert "127.0.0.1" in text


def test_the_audit_log_is_a_table_that_is_filtered_and_taken_along(web: WebClient) -> None:
    olga = Person(web, "olga")
    for name in ("eva", "karel"):
        olga.send("/accounts/users", name=name, role="guest", password=WORD)
    assert 'id="audit"><a href="/audit"' in olga.see("/accounts")
    assert "user added" in olga.see("/audit")
    assert Person(web, "uwe").get("/audit").status == 403
    shown = olga.see("/audit?log.filter=karel")
    assert "1 of " in shown
    rows = json.loads(olga.see("/audit?log.filter=karel&log.as=json"))
    assert [(row["who"], row["action"], row["subject"]) for row in rows] == [("olga", "user added", "karel guest")]
    assert "Audit log" not in Person(web, "uwe").see("/accounts")


def test_a_guest_keeps_their_own_account_and_is_not_told_who_has_another(web: WebClient, archive: Archive) -> None:
    add_people(archive, (("gabi", "guest"),))
    gabi = Person(web, "gabi")
    shown = gabi.see("/accounts")
    assert "<h1>Your account</h1>" in shown
    assert 'href="/accounts"' in gabi.see("/").partition("</nav>")[0]
    for foreign in ("olga", "uwe", "Tokens for programs", "Audit log"):
        assert foreign not in shown
    assert gabi.send("/accounts/tokens", name="mine", scope="read")[0] == 403
    assert gabi.send("/accounts/users/password", name="uwe", password=WORD)[0] == 403
    assert gabi.send("/accounts/language", language="cs")[0] == 303
    assert "Váš účet" in gabi.see("/accounts")
    assert "authenticator" in gabi.send("/accounts/two-factor")[1] or "otpauth" in gabi.send("/accounts/two-factor")[1]
    assert gabi.send("/accounts/password", old=WORD, new="another long one")[0] == 303
    assert Accounts(archive.catalog.database).sign_in("gabi", "another long one") is not None


def test_a_refused_form_of_accounts_keeps_what_was_written_but_no_password(web: WebClient) -> None:
    status, shown = Person(web, "olga").send(
        "/accounts/users", name="uwe", role="guest", email="u@example.org", password=WORD
    )
    assert status == 422
    form = shown.partition('action="/accounts/users"')[2].partition("</form>")[0]
    for part in ('value="uwe"', 'value="u@example.org"', '<option value="guest" selected>'):
        assert part in form
    assert WORD not in shown


def test_choosing_a_language_after_a_refused_form_leads_to_where_the_form_stood(web: WebClient) -> None:
    olga = Person(web, "olga")
    fields = urlencode({"kind": "crawl", "csrf": olga.csrf})
    sent = {"Content_Type": FORM, "Cookie": olga.cookie}
    shown = web.ask("POST", "/jobs/start", fields, **sent, Referer=f"{web.address}/jobs?state=done").text
    assert "/language/cs?back=/jobs%3Fstate%3Ddone" in shown
    shown = web.ask("POST", "/jobs/start", fields, **sent, Referer="https://example.org/jobs").text
    assert 'href="/language/cs?back=/"' in shown


def test_tokens_tell_their_last_use_and_expire_and_people_tell_their_last_sign_in(tmp_path: Path) -> None:
    now = at(100)
    with Archive(tmp_path / "lived", clock=lambda: now) as archive:
        add_people(archive)
        with running(archive) as web:
            olga = Person(web, "olga")
            text = olga.send("/accounts/tokens", name="robot", scope="write", **{"for": "30d"})[1]
            token = {"Authorization": "Bearer " + re.findall(r'class="secret">([^<]+)<', text)[0]}
            listed = web.get("/api/v1/tokens", **token).json()["tokens"][0]
            assert (listed["last_used"], listed["expires"]) == (None, rfc3339(now + timedelta(days=30)))
            archive.attached(UseCounter).write()
            assert web.get("/api/v1/tokens", **token).json()["tokens"][0]["last_used"] == rfc3339(now)
            assert f'data-label="Last used"><div><time datetime="{rfc3339(now)}"' in olga.see("/accounts")
            users = {row["name"]: row["last_sign_in"] for row in web.get("/api/v1/users", **token).json()["users"]}
            assert users == {"olga": rfc3339(now), "uwe": None}
            now += timedelta(days=30)
            assert web.get("/api/v1/tokens", **token).status == 401
            assert "expired" in Person(web, "olga").see("/accounts")


def test_the_audit_log_names_what_was_changed_and_leads_to_it_in_the_readers_language(web: WebClient) -> None:
    olga = Person(web, "olga")
    olga.send("/watches", url="http://example.org/")
    olga.send("/watches/1", action="save", every="2h")
    shown = olga.see("/audit").partition("<main")[2]
    assert "None" not in shown
    assert ">watch changed<" in shown
    assert '<a href="/watches/1">example.org/</a>' in shown
    olga.send("/watches/1", action="save", every="2h", name="Front page")
    assert '<a href="/watches/1">example.org/ · Front page</a>' in olga.see("/audit")
    czech = web.get("/audit", Cookie=olga.cookie, Accept_Language="cs").text
    assert "hlídání změněno" in czech


def test_every_action_of_the_audit_log_has_a_name_for_people() -> None:
    audited = {one.audited for one in all_operations().values() if one.audited}
    assert audited - set(AUDIT_NAMES) == set()


def test_the_audit_log_names_runs_and_searches_and_tells_what_is_gone(archive: Archive) -> None:
    context = Context(archive, user="olga", rights=7)
    made = start_run(context, StartRun(kind="verify")).value
    called = "Verification of the archive"
    assert audited_things(context, "job paused", str(made.id)) == [AuditedThing(called, f"/jobs/{made.id}")]
    assert audited_things(context, "run started", "verify") == [AuditedThing(called)]
    crawled = audited_things(context, "run started", "crawl http://example.org/docs/")
    assert crawled == [AuditedThing("Crawl of example.org")]
    logged = next(row for row in audit_entries(archive, 5) if row.action == "run started")
    assert audited_things(context, logged.action, logged.subject) == [AuditedThing(called, f"/jobs/{made.id}")]
    assert audited_things(context, "run started", "verify #77") == [AuditedThing(called)]
    saved_search(archive, "olga", archive.clock())
    assert audited_things(context, "saved search changed", "1")[0].page == "/saved/1"
    assert audited_things(context, "watch removed", "8, 9") == [
        AuditedThing("watch 8, no longer there"),
        AuditedThing("watch 9, no longer there"),
    ]
    page = AuditedThing("example.org/", "/url/http://example.org/")
    assert audited_things(context, "watch added", "http://example.org/") == [page]
    assert audited_things(context, "setting changed", "store.keep_for = 7d")[0].page == "/settings?q=store.keep_for"
    assert audited_things(context, "compacted", "full") == [AuditedThing("the whole archive")]
    assert audited_things(context, "login", "") == []


def test_the_help_says_the_four_tasks_in_both_languages(web: WebClient) -> None:
    shown = web.get("/help").text
    for place in ("/watches", "/alerts", "/jobs#start", "/sites", "/accounts", "/docs"):
        assert f'<a href="{place}">' in shown.partition("<main")[2].partition("</main>")[0]
    assert "<kbd>/</kbd>" in shown
    assert "Watch a price" in web.get("/guide").text
    assert "Hlídat cenu" in web.get("/help", Accept_Language="cs").text
    assert '<a href="/help">Help</a>' in web.get("/").text


def test_guests_are_told_what_they_may_not_do_and_see_no_heading_over_nothing(web: WebClient, archive: Archive) -> None:
    add_people(archive, (("gabi", "guest"),))
    gabi = Person(web, "gabi")
    assert "not allowed to add watches" in gabi.see("/watches")
    runs = gabi.see("/jobs")
    assert "not allowed to start runs" in runs
    assert ">Advanced<" not in runs
    rule = WatchSpec(when=parse_alert_rules("unavailable:3"))
    WatchList(archive).add(["http://example.org/"], rule)
    shown = gabi.see("/watches/1")
    assert "it is unavailable this many times in a row: 3" in shown
    assert "nobody is notified" in shown


def test_an_invitation_has_a_button_to_copy_it_and_a_used_one_says_so(web: WebClient) -> None:
    shown = Person(web, "olga").send("/accounts/users/invite", role="guest")[1]
    assert re.search(r'href="[^"]+/join\?invitation=[^"]+" data-copy="Copied">Copy the link<', shown)
    answer = web.get("/join?invitation=used", Accept="text/html")
    assert answer.status == 404
    assert "<h1>This invitation was already used or has expired</h1>" in answer.text


def test_the_overview_counts_addresses_and_unread_alerts(web: WebClient, archive: Archive) -> None:
    url = "http://example.org/page"
    archive.put(url, b"<p>one</p>")
    WatchList(archive).add([url], WatchSpec())
    alert = AlertRow(0, url, "changed", 1, "m", "{}")
    watches_of(archive).save_judged([], [NewAlert(alert, [], 0)])
    shown = Person(web, "uwe").see("/")
    assert "<dt>Addresses</dt>" in shown
    assert '<a href="/alerts?show=unread">1 unread alert</a>' in shown
    assert "unread alert" not in web.get("/").text


def test_an_empty_archive_says_what_to_do_and_only_what_the_reader_can_do(web: WebClient) -> None:
    assert "This archive is empty. Save a page" in web.get("/search?q=garden").text
    assert "Try fewer or other words" not in web.get("/search?q=garden").text
    assert "crawl a site, and its host appears here" in web.get("/sites").text
    words = "Enter an address above"
    assert (words in web.get("/watches").text, words in Person(web, "uwe").see("/watches")) == (False, True)


def test_a_page_that_nothing_visits_again_is_not_planned_and_its_page_says_why(
    web: WebClient, archive: Archive
) -> None:
    archive.put("http://example.org/", b"<title>Home</title>", archive.clock())
    shown = web.get("/url/http://example.org/").text
    assert "not planned" in shown
    assert "interval not known yet" not in shown
    watches = WatchList(archive)
    watches.add(["http://example.org/"], WatchSpec(every=3600))
    watches.pause(["http://example.org/"])
    assert "its watch is paused" in web.get("/url/http://example.org/").text


def test_the_audit_log_shows_changes_without_who_signed_in(web: WebClient) -> None:
    olga = Person(web, "olga")
    olga.send("/accounts/users", name="ida", password=WORD, role="guest")
    everything, changes, signs = (olga.see(f"/audit{asked}") for asked in ("", "?show=changes", "?show=signs"))
    found = [("user added" in page, ">signed in<" in page) for page in (everything, changes, signs)]
    assert found == [(True, True), (True, False), (False, True)]
