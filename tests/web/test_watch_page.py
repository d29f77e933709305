"""A watch as an object: its page, its form, several of them on one page, and who may change it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from served_archive import WebClient, at, running
from signed_in import Person, add_people

from letopis import __version__
from letopis.archive import Archive
from letopis.archive.audit import audit_entries
from letopis.archive.watches import JudgedWatch, watches_of
from letopis.catalog.watches import AlertRow, NewAlert, Watches
from letopis.model import to_millis
from letopis.monitor.alerts import WatchState
from letopis.monitor.views import watched_values
from letopis.monitor.watch import AlertConditionKind, AlertKind, AlertRule, WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.web.charts import value_curve
from letopis.web.watch_form import ALERT_NAMES, CONDITION_NAMES, form_of_spec, said_in_form

SHOP = "http://shop.example/lamp"
LAMP = (
    "<html><title>Lamp</title><h1>Lamp</h1><p id=price>19.90 EUR</p><p class=note>Add to cart</p>"
    "<script>alert(1)</script></html>"
)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", clock=lambda: at(100)) as opened:
        add_people(opened, (("olga", "owner"), ("uwe", "user"), ("eva", "user")))
        opened.put(SHOP, LAMP.encode())
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


@pytest.fixture
def uwe(web: WebClient) -> Person:
    return Person(web, "uwe")


def test_watches_are_sorted_by_the_last_change_of_their_pages(uwe: Person, archive: Archive) -> None:
    for name, minutes in (("b", 30), ("a", 20), ("c", 10)):
        for number in range(2):
            archive.put(f"http://{name}.example/", b"<p>It says %d</p>" % number, at(minutes + number))
        uwe.post("/watches", url=f"http://{name}.example/", every="1h")
    for sort, order in (("change", ["c", "a", "b"]), ("-change", ["b", "a", "c"])):
        found = json.loads(uwe.get(f"/watches?sort={sort}&as=json").text)
        assert [row["url"][7] for row in found] == order


def test_a_row_of_the_list_names_all_that_changed_and_through_filters_only_what_they_let_through(
    uwe: Person, archive: Archive
) -> None:
    page = "http://shop.example/pen"
    for hour, euros, stock in ((70, 40, "In stock, sent at once."), (80, 50, "Sold out until next month.")):
        archive.put(page, f"<title>Pen</title><p class=price>EUR {euros}</p><p>{stock}</p>".encode(), at(hour))
    uwe.post("/watches", url=page)
    uwe.post("/watches", url=page, subject="price")
    uwe.post("/watches", url=page, subject="part", css="h1")
    priced, version = WatchList(archive).entries()[1], archive.versions(page)[-1]
    facts = {"watch": priced.id, "version": version.number, "difference": "-EUR 40\n+EUR 50"}
    row = AlertRow(0, page, "changed", to_millis(version.time), f"{page} changed", json.dumps(facts))
    Watches(archive.catalog.database).save_judged([], [NewAlert(row, ())])
    shown = uwe.get("/watches").text.partition("<tbody>")[2].partition("</tbody>")[0]
    whole, by_price, part = (one.partition("</tr>")[0] for one in shown.split("<tr>")[1:])
    said = "EUR <del>40</del> <ins>50</ins>"
    assert [said in one for one in (whole, by_price, part)] == [True, True, False]
    assert ["Sold out" in one for one in (whole, by_price, part)] == [True, False, False]


def test_adding_a_watched_page_again_makes_another_watch_and_wipes_nothing(uwe: Person, archive: Archive) -> None:
    uwe.post("/watches", url=SHOP, every="2h", css="#price", subject="part", notify="https://example.org/hook")
    answer = uwe.post("/watches", url=SHOP)
    assert answer.headers["location"] == "/watches/2?done=another"
    assert "was already watched; that watch was not changed" in uwe.get("/watches/2?done=another").text
    first, second = (entry.watch for entry in WatchList(archive).entries())
    assert (first.every, first.filters, first.notify, first.name) == (
        7200.0, (("css", "#price"),), ("https://example.org/hook",), "",
    )  # fmt: skip
    assert (second.filters, second.notify, second.name, second.owner) == ((), (), "2", "uwe")
    page = uwe.get("/watches/1").text
    assert "Other watches of this page" in page
    assert uwe.get("/watches").text.count('name="url" value="') == 2


def test_a_watch_is_changed_in_its_form_and_what_is_left_empty_is_taken_back(uwe: Person, archive: Archive) -> None:
    uwe.post("/watches", url=SHOP, every="2h", css="#price", subject="part", alert=["changed", "recovered"])
    saved = uwe.post(
        "/watches/1", action="save", subject="price", css="", cron="0 7 * * mon-fri", zone="Europe/Prague",
        hours="mon-fri 08:00-18:00", quiet_hours="22:00-07:00", alert=["changed", "unavailable"], unavailable="5",
        below="15", headers="Accept-Language: cs", tag="shops", name="cheap",
    )  # fmt: skip
    assert saved.headers["location"] == "/watches/1?done=saved"
    entry = WatchList(archive).by_id(1)
    assert entry.spec.every is None
    assert (entry.watch.cron, entry.watch.zone, entry.watch.quiet) == (
        "0 7 * * mon-fri",
        "Europe/Prague",
        "22:00-07:00",
    )
    assert entry.watch.filters == (("price", "html"),)
    assert [str(rule) for rule in entry.watch.when] == ["changed", "unavailable:5"]
    assert [(one.kind, one.value) for one in entry.watch.conditions] == [("below", "15")]
    assert entry.watch.headers == (("Accept-Language", "cs"),)
    assert (entry.watch.name, entry.watch.tag, entry.watch.owner) == ("cheap", "shops", "uwe")
    shown = uwe.get("/watches/1").text
    for value in ("mon-fri 08:00-18:00", "Europe/Prague", "22:00-07:00", "Accept-Language: cs"):
        assert value in shown
    assert said_in_form(form_of_spec(entry.spec, "shops", "cheap"), {"alert": ["changed", "unavailable"]}) == {
        "cron": "0 7 * * mon-fri", "tag": "shops", "zone": "Europe/Prague", "hours": "mon-fri 08:00-18:00",
        "quiet_hours": "22:00-07:00", "filters": [{"kind": "price", "expression": "html"}],
        "headers": ["Accept-Language: cs"], "conditions": [{"kind": "below", "value": "15"}],
        "when": "changed,unavailable:5",
    }  # fmt: skip


def test_check_now_says_when_the_page_is_looked_at_and_waits_for_that_look(
    uwe: Person, web: WebClient, archive: Archive
) -> None:
    uwe.post("/watches", url=SHOP)
    assert uwe.send("/watches/1", action="check") == (303, "/watches/1?done=check")
    book, rows = watches_of(archive), WatchList(archive)
    row = book.by_id(1)
    assert row is not None
    book.save_judged([JudgedWatch(WatchState(judged=to_millis(at(100))).to_json(), row.due, row.due, 1)], ())
    where = uwe.send("/watches/1", action="check")[1]
    assert where.startswith("/watches/1?done=check&since=")
    assert rows.by_id(1).due == at(100) + timedelta(seconds=10)
    said = uwe.get(where).text
    assert "Checked 0 s ago; the next check is possible in 10 s, and will be made then." in said
    assert 'data-field="last_judged"' in said
    book.set_due([row], to_millis(at(100)) + 300_000)
    assert "The check is running." in uwe.get(where).text
    book.set_due([row], to_millis(at(100)))
    assert "This watch is due now" in uwe.get(where).text
    assert "Toto hlídání je teď na řadě" in web.get(where, Cookie=uwe.cookie, Accept_Language="cs").text
    book.save_judged([JudgedWatch(WatchState(judged=to_millis(at(100)) + 1).to_json(), 0, 0, 1)], ())
    book.set_due([row], to_millis(at(100)) + 3_600_000)
    assert "Checked <time" in uwe.get(where).text


def test_the_page_shows_what_filters_leave_before_they_are_saved(uwe: Person, archive: Archive) -> None:
    uwe.post("/watches", url=SHOP)
    seen = uwe.post("/watches/1", action="preview", subject="price")
    assert seen.status == 200
    assert re.search(r"<pre[^>]*>19\.90 EUR", seen.text)
    assert WatchList(archive).by_id(1).watch.filters == ()
    assert "leave nothing" in uwe.post("/watches/1", action="preview", subject="part", css=".nowhere").text
    stock = uwe.post("/watches/1", action="preview", subject="stock").text
    assert re.search(r"<pre[^>]*>in stock", stock)
    wrong = uwe.post("/watches/1", action="preview", subject="part", css="[[")
    assert "is not a CSS selector" in wrong.text


def test_a_wrong_change_is_explained_and_the_form_keeps_what_was_written(uwe: Person, archive: Archive) -> None:
    uwe.post("/watches", url=SHOP, every="2h")
    refused = uwe.post("/watches/1", action="save", every="3h", zone="Mars/Olympus", alert="changed")
    assert refused.status == 422
    assert "is not a time zone" in refused.text
    assert 'value="Mars/Olympus"' in refused.text
    assert WatchList(archive).by_id(1).watch.every == 7200.0


def test_only_the_owner_and_administrators_change_a_watch_and_the_audit_log_says_who_did(
    web: WebClient, uwe: Person, archive: Archive
) -> None:
    uwe.post("/watches", url=SHOP, every="2h", notify="https://example.org/secret")
    eva, olga = Person(web, "eva"), Person(web, "olga")
    page = eva.get("/watches/1").text
    assert "secret" not in page
    assert "Only its owner and owners of the archive can change it." in page
    for answer in (
        eva.post("/watches/1", action="save", every="1m"),
        eva.post("/watches/1", action="pause"),
        eva.post("/watches/many", url="1", action="remove", confirmed="1"),
        eva.post("/watches/many", url=SHOP, action="tag", tag="mine"),
    ):
        assert answer.status == 403
        assert "This watch belongs to uwe;" in answer.text
    entry = WatchList(archive).by_id(1)
    assert (entry.watch.every, entry.paused, entry.watch.tag) == (7200.0, False, "")
    assert olga.post("/watches/1", action="save", every="3h").status == 303
    assert WatchList(archive).by_id(1).watch.owner == "uwe"
    told = [(row.who, row.action) for row in audit_entries(archive, 10)]
    assert ("olga", "watch changed") in told
    assert ("uwe", "watch added") in told
    assert ("eva", "watch changed") not in told


def test_a_copy_is_a_watch_of_whoever_made_it(web: WebClient, uwe: Person, archive: Archive) -> None:
    uwe.post("/watches", url=SHOP, every="2h", css="#price", subject="part")
    olga = Person(web, "olga")
    assert olga.post("/watches/1", action="clone").headers["location"] == "/watches/2?done=cloned"
    copy = WatchList(archive).by_id(2).watch
    assert (copy.filters, copy.every, copy.name, copy.owner) == ((("css", "#price"),), 7200.0, "2", "olga")


def test_the_page_says_what_its_time_is_of_and_gives_the_tag_a_label_of_its_own(uwe: Person) -> None:
    uwe.post("/watches", url=SHOP, tag="shops")
    uwe.post("/watches/1", action="pause")
    shown = uwe.see("/watches/1")
    assert '<dd class="under">last check <time' in shown
    assert '<dt>Tag</dt><dd class="text"><a href="/watches?tag=shops">' in shown


def test_snoozing_is_shown_and_can_be_ended(uwe: Person, archive: Archive) -> None:
    uwe.post("/watches", url=SHOP)
    uwe.post("/watches/1", action="snooze", **{"for": "8h"})
    assert "Notifications wait until" in uwe.get("/watches/1").text
    assert "snoozed" in uwe.get("/watches").text
    uwe.post("/watches/1", action="snooze", **{"for": ""})
    assert WatchList(archive).by_id(1).watch.snooze is None


def test_the_copy_to_pick_from_runs_nothing_and_may_only_be_framed_by_us(uwe: Person) -> None:
    uwe.post("/watches", url=SHOP)
    picking = uwe.get("/watches/1/pick")
    assert 'sandbox="allow-same-origin"' in picking.text
    copy = uwe.get("/watches/1/copy")
    policy = copy.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-same-origin; default-src 'none'; script-src 'none'")
    assert "allow-scripts" not in policy
    assert "id=price" in copy.text
    chosen = uwe.get("/watches/1?css=%23price").text
    assert 'value="#price"' in chosen
    assert "This is not saved yet." in chosen


def test_the_page_to_pick_from_holds_the_stored_document_in_its_frame_alone(uwe: Person) -> None:
    uwe.post("/watches", url=SHOP)
    page = uwe.get("/watches/1/pick").text
    assert "id=price" in uwe.get("/watches/1/copy").text
    assert "id=price" not in unescape(page)
    assert f"<span>Letopis {__version__}</span>" in page


def test_a_watch_that_is_not_there_is_told_on_a_page(uwe: Person) -> None:
    for path in ("/watches/9", "/watches/9/pick", "/watches/9/copy"):
        answer = uwe.get(path)
        assert answer.status == 404
        assert "there is no watch 9" in answer.text.lower()


@pytest.mark.parametrize("place", ["/watches", "/saved"])
def test_a_number_that_no_row_can_have_is_the_address_of_no_page(uwe: Person, place: str) -> None:
    assert [uwe.get(f"{place}/{number}").status for number in ("9" * 18, "9" * 19, "9" * 5000)] == [404] * 3


def test_every_alert_and_every_condition_has_a_name_in_the_form() -> None:
    assert set(ALERT_NAMES) == set(AlertKind)
    assert set(CONDITION_NAMES) == set(AlertConditionKind)
    assert form_of_spec(WatchSpec(every=5400.0), "", "")["every"] == "90m"


def test_alerts_are_unread_until_they_are_opened_or_somebody_says_so(
    uwe: Person, web: WebClient, archive: Archive
) -> None:
    uwe.post("/watches", url=SHOP)
    facts = AlertRow(0, SHOP, "unavailable", to_millis(at(90)), f"{SHOP} is unavailable", "{}")
    Watches(archive.catalog.database).save_judged([], [NewAlert(facts, ())])
    eva = Person(web, "eva")

    def unread(person: Person) -> int:
        return person.get("/alerts").text.count('class="dot"')

    assert (unread(uwe), unread(eva), web.get("/alerts").text.count('class="dot"')) == (1, 1, 0)
    assert uwe.post("/alerts", url=SHOP, back="/alerts?show=unread").headers["location"] == "/alerts?show=unread"
    assert "You have read everything." in uwe.get("/alerts?show=unread").text
    assert (unread(uwe), unread(eva)) == (0, 1)
    uwe.post("/alerts", url=SHOP, action="unread", back="https://evil.example/")
    assert unread(uwe) == 1
    uwe.post("/alerts")
    assert unread(uwe) == 0
    eva.get(f"/url/{SHOP}")
    assert unread(eva) == 1, "whoever looks at a page has not read its alerts"
    (opened,) = re.findall(r'href="(/url/[^"]+alert=\d+)"', eva.get("/alerts").text)
    eva.get(opened)
    assert unread(eva) == 0, "whoever opened the alert knows"


@pytest.mark.parametrize(
    "said",
    ["shows nothing that the filters of the watch select; change them", "has appeared; before, it did not answer",
     "has changed: the JSONPath '$.a' needs a JSON document"],
)  # fmt: skip
def test_an_alert_that_says_why_no_text_is_shown_is_not_shown_with_texts_of_the_page(
    uwe: Person, archive: Archive, said: str
) -> None:
    uwe.post("/watches", url=SHOP)
    archive.put(SHOP, LAMP.replace("19.90", "17.50").encode(), at(80))
    row = AlertRow(0, SHOP, "changed", to_millis(at(90)), f"{SHOP} {said}", '{"version": 1}')
    Watches(archive.catalog.database).save_judged([], [NewAlert(row, ())])
    text = unescape(uwe.get("/alerts").text)
    assert "17.50" not in text
    assert said.partition(";")[0] in text


def test_a_comparison_reads_the_alerts_up_to_what_it_shows_and_no_later_one(uwe: Person, archive: Archive) -> None:
    page = "http://shop.example/other"
    uwe.post("/watches", url=page)
    archive.put(page, b"<title>Shop</title><p>The price is now 70 EUR.</p>", at(70))
    for hour in (80, 85, 90):
        archive.put(page, b"<title>Shop</title><p>The price is now %d EUR.</p>" % hour, at(hour))
        version = archive.versions(page)[-1].number
        row = AlertRow(0, page, "changed", to_millis(at(hour)), f"{page} changed", json.dumps({"version": version}))
        Watches(archive.catalog.database).save_judged([], [NewAlert(row, ())])

    def unread() -> int:
        return uwe.get("/alerts").text.count('class="dot"')

    opened = [
        one.replace("&amp;", "&") for one in re.findall(r'href="(/compare/[^"]+alert=\d+)"', uwe.get("/alerts").text)
    ]
    assert unread() == 3
    for link, left in ((opened[1], 1), (opened[2], 1), (opened[0], 0)):
        assert ("A change of this page is unread" in uwe.get(link).text) == bool(left)
        assert unread() == left
    text = uwe.get(f"/url/{page}").text
    assert "The price is now <del>85</del> <ins>90</ins> EUR." in text, "what went beside what came"


def test_a_part_that_says_a_price_is_watched_as_a_price(uwe: Person) -> None:
    uwe.post("/watches", url=SHOP)
    for css, subject in (("%23price", "price"), (".note", "part")):
        page = uwe.get(f"/watches/1?css={css}").text
        assert f'name="subject" value="{subject}" checked' in page
        assert page.count(">Save<") == 1


def test_how_often_is_chosen_from_a_list_or_written_beside_it(uwe: Person, archive: Archive) -> None:
    uwe.post("/watches", url=SHOP, every="other", span="90m", subject="page")
    assert WatchList(archive).by_id(1).watch.every == 5400.0
    page = uwe.see("/watches/1")
    assert '<option value="other" selected>' in page
    assert 'name="span" placeholder="90m" spellcheck="false" value="90m"' in page
    assert '<span class="name">When it is checked</span> <span class="soft">every 90m</span>' in page
    uwe.post("/watches/1", action="save", subject="page", every="1d", span="90m", alert=["recovered"])
    assert WatchList(archive).by_id(1).watch.every == 86400.0
    page = uwe.see("/watches/1")
    assert '<option value="1d" selected>' in page
    for name, told in (
        ("When it is checked", "every day"),
        ("Alert when", "it is available again"),
        ("Notify", "nobody"),
    ):
        assert f'<span class="name">{name}</span> <span class="soft">{told}</span>' in page


def priced(archive: Archive, *prices: str) -> None:
    for number, price in enumerate(prices):
        archive.put(SHOP, LAMP.replace("19.90 EUR", price).encode(), at(110 + 1440 * number))


def test_a_watched_price_is_drawn_over_time_with_its_table(uwe: Person, archive: Archive) -> None:
    uwe.post("/watches", url=SHOP, subject="price", css="")
    priced(archive, "24.90 EUR", "14.90 EUR", "16.39 EUR")
    page = uwe.get("/watches/1").text
    shown = unescape(page.partition('id="curve"')[2].partition("</section>")[0])
    assert "Price over time" in page
    assert re.findall(r'<dd class="text">([^<]*)</dd>', shown) == [
        "16.39 EUR",
        "+10.0\u00a0%",
        "14.90 EUR",
        "24.90 EUR",
    ]
    assert "lowest 14.90 EUR, highest 24.90 EUR, now 16.39 EUR" in shown
    assert len(re.findall(r"<polyline", shown)) == 1
    assert [row for row in re.findall(r"<tr><td.*?</tr>", shown, re.DOTALL) if "24.90 EUR" in row]
    values = uwe.get("/api/v1/watches/1/values").json()["values"]
    assert [(row["text"], row["value"]) for row in values][-1] == ("16.39 EUR", 16.39)
    rows = uwe.get("/watches/1?v.as=json").json()
    assert [row["text"] for row in rows] == ["16.39 EUR", "14.90 EUR", "24.90 EUR", "19.90 EUR"]


def test_versions_in_which_the_price_stays_are_no_new_values_and_a_gap_breaks_the_curve(archive: Archive) -> None:
    watch = WatchList(archive).add([SHOP], WatchSpec(filters=(("price", "html"),)))[0].watch
    priced(archive, "19.90 EUR <b>new</b>", "sold out", "17 EUR")
    seen = watched_values(archive, watch, 500)
    assert [(one.text, one.value) for one in seen] == [("19.90 EUR", 19.9), ("", None), ("17 EUR", 17.0)]
    curve = value_curve([(one.time, one.text, one.value) for one in seen], at(110 + 1440 * 4))
    assert curve is not None
    assert (len(curve.lines), curve.lowest.value, curve.highest.value) == (2, 17.0, 19.9)
    assert curve.lines[-1].split()[-1] == "1000.0,100.0"
    assert value_curve([], at(0)) is None


def test_a_watch_of_words_has_no_curve(uwe: Person) -> None:
    uwe.post("/watches", url=SHOP, subject="part", css="h1")
    assert 'id="curve"' not in uwe.get("/watches/1").text


def test_the_list_shows_what_is_unread_failing_or_paused_alone_and_leads_to_a_feed(
    uwe: Person, archive: Archive
) -> None:
    other = "http://shop.example/other"
    archive.put(other, b"<html><title>Other</title>")
    archive.put(SHOP, LAMP.replace("19.90", "17.90").encode(), at(60))
    uwe.post("/watches", url=SHOP)
    uwe.post("/watches", url=other)
    uwe.post("/watches/2", action="pause")
    page = uwe.get("/watches").text
    assert 'href="/watches?tag=&amp;show=unread">unread <span class="count">1</span>' in page
    assert 'href="/watches?tag=&amp;show=paused">paused <span class="count">1</span>' in page
    assert "show=failing" not in page, "nothing fails"
    for show, url in (("unread", SHOP), ("paused", other)):
        listed = re.findall(r'class="page" href="/watches/\d" title="([^"]+)"', uwe.get(f"/watches?show={show}").text)
        assert listed == [url]
    assert 'href="/feed/watches"' in page
    feed = uwe.get("/feed/watches").text
    assert "<title>Changes of all watches</title>" in feed
    assert f"{SHOP}" in feed


def test_what_a_watch_alerts_of_stands_ticked_and_what_its_tag_says_stays_the_tags(
    uwe: Person, archive: Archive
) -> None:
    uwe.post("/watches", url=SHOP)
    assert 'name="alert" value="changed" checked' in uwe.get("/watches/1").text
    uwe.post("/watches/1", action="save", alert="changed", usual="yes", tag="")
    assert WatchList(archive).by_id(1).spec.when == (), "what is usual is not said, so that a tag may say more"
    WatchList(archive).add([], WatchSpec(when=(AlertRule(AlertKind.RECOVERED),)), "calm")
    uwe.post("/watches/1", action="save", alert="changed", usual="yes", tag="calm")
    page = uwe.get("/watches/1").text
    assert 'value="changed" checked' not in page
    assert "If none is checked, the defaults of its tag apply." in page
    assert '<span class="name">Alert when</span> <span class="soft">it is available again</span>' in page


def test_a_page_whose_watch_is_paused_does_not_say_that_it_is_checked(uwe: Person) -> None:
    uwe.post("/watches", url=SHOP, every="7d")
    assert "Checked by a watch every week." in uwe.get(f"/url/{SHOP}").text
    uwe.post("/watches/1", action="pause")
    page = uwe.get(f"/url/{SHOP}").text
    assert "Its watch is paused." in page
    assert "Checked by a watch" not in page
