"""Watches against a real server: added, run, judged, told."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scripted_site import ScriptedSite

from letopis import Archive, Monitor
from letopis.archive import OWN
from letopis.archive.watches import JudgedWatch, watches_of
from letopis.config import ChangeSettings, FetchSettings, MonitorSettings, Settings, StoreSettings
from letopis.errors import NotFound, NotReady, Refused, UnknownUrl, UnknownVersion, UsageError
from letopis.model import Outcome
from letopis.monitor.checker import open_checker
from letopis.monitor.notifications import MAX_ATTEMPTS, Notification, Outbox, retry_pause
from letopis.monitor.watch import AlertCondition, AlertConditionKind, WatchSpec, parse_alert_rules
from letopis.monitor.watch_list import WatchList
from letopis.monitor.watcher import Watcher, WatchResult
from letopis.operations import Context
from letopis.operations.watches import AddWatches, watch_add

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
OLD = b"<h1>Hours</h1><main><p>Open from nine to five on every working day.</p></main><footer>One</footer>"
NEW = b"<h1>Hours</h1><main><p>Closed for the whole of August, see you later.</p></main><footer>One</footer>"


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class World:
    """An archive, a clock, and what the watches have told."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.clock = Clock()
        self.archive = Archive(folder, clock=self.clock, settings=settings)
        self.book = WatchList(self.archive)
        self.watches = watches_of(self.archive)
        self.sent: list[tuple[str, Notification]] = []
        self.failing = False

    def send(self, target: str, message: Notification, guarded: bool) -> None:
        if self.failing:
            raise NotReady("nobody answers")
        self.sent.append((target, message))

    async def run(self, after: timedelta = HOUR) -> list[WatchResult]:
        self.clock.now += after
        told: list[WatchResult] = []
        async with open_checker(self.archive) as checks:
            await Watcher(self.archive, checks, Outbox(self.archive, self.send), told.append, lambda: 0.0).run_due()
        return told

    def kinds(self) -> list[str]:
        return [message.facts["kind"] for _, message in self.sent]


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(**sections: Any) -> World:
        made.append(World(tmp_path / "a", Settings(**sections)))
        return made[-1]

    yield make
    for world in made:
        world.archive.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


SPEC = WatchSpec(every=600, notify=("https://hook.example/",))


async def test_change_is_told_once_with_its_difference(world: World, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], SPEC, "hours")
    assert [one.check.outcome for one in await world.run()] == [Outcome.NEW]
    scripted_site.set("/page", NEW)
    await world.run()
    await world.run()
    assert world.kinds() == ["changed"]
    target, message = world.sent[0]
    assert target == "https://hook.example/"
    assert (message.facts["url"], message.facts["tag"], message.facts["version"]) == (url, "hours", 1)
    assert "+Closed for the whole of August" in message.facts["difference"]
    assert [row.kind for row in world.book.alerts(url)] == ["changed"]


async def test_only_due_watches_are_looked_at(world: World, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], replace(SPEC, every=3600))
    assert len(await world.run()) == 1
    assert await world.run(timedelta(minutes=59)) == []
    assert len(await world.run(timedelta(minutes=1))) == 1


async def test_every_check_now_makes_a_look_of_its_own_when_the_page_may_be_asked_again(
    world: World, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], SPEC)
    await world.run()
    scripted_site.set("/page", NEW)
    world.clock.now += timedelta(seconds=4)
    assert world.book.check_now([url])[0].due == world.clock.now + timedelta(seconds=6)
    assert await world.run(timedelta(0)) == []
    assert [one.check.cached for one in await world.run(timedelta(seconds=6))] == [False]
    assert world.kinds() == ["changed"]
    world.clock.now += timedelta(seconds=1)
    row = world.watches.find(url)
    assert row is not None
    world.watches.set_due([row], int(world.clock.now.timestamp() * 1000))  # as a click while the former check ran
    assert await world.run(timedelta(0)) == [], "what is recorded already is no new look"
    assert len(await world.run(timedelta(seconds=9))) == 1


async def test_change_that_somebody_else_recorded_is_told(world: World, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], SPEC)
    await world.run()
    scripted_site.set("/page", NEW)
    world.clock.now += HOUR
    with Monitor(world.archive) as other:
        other.get(url).check()
    world.clock.now += timedelta(minutes=1)
    assert [one.check.outcome for one in await world.run(timedelta(0))] == [Outcome.UNCHANGED]
    assert world.kinds() == ["changed"]


async def test_filters_choose_what_counts_and_storage_keeps_all(world: World, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], replace(SPEC, filters=(("css", "footer"),)))
    await world.run()
    scripted_site.set("/page", NEW)
    await world.run()
    assert world.kinds() == []
    assert world.archive.get(url).body == NEW
    scripted_site.set("/page", NEW.replace(b"One", b"Another imprint and address"))
    await world.run()
    assert world.kinds() == ["changed"]
    assert "August" not in world.sent[0][1].facts["difference"]


@pytest.mark.parametrize(
    "filters", [(("xpath", "//main"),), (("ignore", r"\d+ visitors"), ("css", "main")), (("xpath", "//p/text()"),)]
)
async def test_other_filters(world: World, scripted_site: ScriptedSite, filters: tuple[tuple[str, str], ...]) -> None:
    page = "<main><p>Prices from {price} crowns, seen by {count} visitors</p></main><p hidden></p>"
    url = scripted_site.set("/page", page.format(price=10, count=1).encode())
    world.book.add([url], replace(SPEC, filters=filters))
    await world.run()
    scripted_site.set("/page", page.format(price=2500, count=1).encode())
    await world.run()
    assert world.kinds() == ["changed"]


async def test_jsonpath_watches_one_value(world: World, scripted_site: ScriptedSite) -> None:
    def document(price: int, at: int) -> bytes:
        return json.dumps({"item": {"price": price, "name": "lamp"}, "time": at}).encode()

    url = scripted_site.set("/item", document(10, 1), Content_Type="application/json")
    world.book.add([url], replace(SPEC, filters=(("jsonpath", "$.item.price"),)))
    await world.run()
    scripted_site.set("/item", document(10, 2), Content_Type="application/json")
    await world.run()
    assert world.kinds() == []
    scripted_site.set("/item", document(99, 3), Content_Type="application/json")
    await world.run()
    assert world.kinds() == ["changed"]


async def test_noise_is_not_told_unless_bytes_count(
    make_world: Callable[..., World], scripted_site: ScriptedSite
) -> None:
    world = make_world()
    url = scripted_site.set("/page", OLD)
    world.book.add([url], SPEC)
    await world.run()
    scripted_site.set("/page", OLD + b"<!-- made in 12 ms -->")
    assert [one.check.outcome for one in await world.run()] == [Outcome.CHANGED]
    assert world.kinds() == []
    world.archive.close()
    strict = make_world(change=ChangeSettings(count="bytes"))
    strict.clock.now = world.clock.now
    scripted_site.set("/page", OLD + b"<!-- made in 13 ms -->")
    await strict.run()
    assert strict.kinds() == ["changed"]


async def test_conditions_on_the_difference(world: World, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], replace(SPEC, conditions=(AlertCondition(AlertConditionKind.ADDS, "september"),)))
    await world.run()
    scripted_site.set("/page", NEW)
    await world.run()
    assert world.kinds() == []
    scripted_site.set("/page", NEW.replace(b"August", b"September and October"))
    await world.run()
    assert world.kinds() == ["changed"]


async def test_down_and_up_again(world: World, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], replace(SPEC, when=parse_alert_rules("unavailable:2,recovered")))
    for status in (200, 410, 410, 410, 200, 200):
        scripted_site.set("/page", OLD, status=status)
        await world.run()
    assert world.kinds() == ["unavailable", "recovered"]
    assert "2 times in a row" in world.sent[0][1].body


async def test_redirect_target_and_silence(world: World, scripted_site: ScriptedSite) -> None:
    scripted_site.set("/a", OLD)
    scripted_site.set("/b", OLD)
    url = scripted_site.redirect("/short", "/a")
    world.book.add([url], replace(SPEC, when=parse_alert_rules("redirect,unchanged:1d")))
    await world.run()
    scripted_site.redirect("/short", "/b")
    await world.run()
    assert world.kinds() == ["redirect"]
    await world.run(timedelta(days=1))
    await world.run(timedelta(days=1))
    assert world.kinds() == ["redirect", "unchanged"]


async def test_sitemap_is_a_source_of_watches(world: World, scripted_site: ScriptedSite) -> None:
    def sitemap(*paths: str) -> bytes:
        rows = "".join(f"<url><loc>{scripted_site.url(path)}</loc></url>" for path in paths)
        return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'.encode()

    for path in ("/one", "/two", "/three"):
        scripted_site.set(path, OLD.replace(b"nine", path.encode() + b" in the morning"))
    inner = scripted_site.set("/inner.xml", sitemap("/one", "/two"), Content_Type="application/xml")
    index = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>{inner}</loc></sitemap>'
    source = scripted_site.set("/map.xml", index.encode() + b"</sitemapindex>", Content_Type="application/xml")
    world.book.add([], SPEC, "site", [source])
    assert [one.watch.kind for one in await world.run()] == ["sitemap", "page", "page"]
    assert [entry.watch.source for entry in world.book.entries("site")] == ["", source, source]
    scripted_site.set("/inner.xml", sitemap("/two", "/three"), Content_Type="application/xml")
    await world.run()
    urls = [entry.watch.url for entry in world.book.entries()]
    assert urls == [source, scripted_site.url("/two"), scripted_site.url("/three")]
    scripted_site.set("/two", NEW)
    await world.run()
    assert world.kinds() == ["changed"]
    assert world.book.remove([source]) == [(source, 3)]
    assert world.book.entries() == []


async def test_tag_gives_defaults(world: World, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], WatchSpec(), "news")
    assert world.book.add([], replace(SPEC, every=7200), "news") == []
    assert [(entry.watch.every, entry.watch.notify) for entry in world.book.entries()] == [(7200, SPEC.notify)]
    with pytest.raises(UsageError, match="tag"):
        world.book.add([], WatchSpec())
    world.book.add([], WatchSpec(jitter=5), "news")
    watch = world.book.entries()[0].watch
    assert (watch.every, watch.jitter, watch.notify) == (7200, 5, SPEC.notify), "defaults are changed, not replaced"
    world.book.forget_tag("news")
    assert world.book.entries()[0].watch.notify == ()
    with pytest.raises(NotFound):
        world.book.forget_tag("news")


async def test_adding_again_changes_the_watch_and_keeps_its_memory(world: World, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], SPEC)
    await world.run()
    world.book.add([url], replace(SPEC, every=1200))
    scripted_site.set("/page", NEW)
    await world.run()
    assert [entry.watch.every for entry in world.book.entries()] == [1200]
    assert world.kinds() == ["changed"]


async def test_failed_delivery_is_kept_and_tried_again(world: World, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], replace(SPEC, every=10**6))
    await world.run()
    scripted_site.set("/page", NEW)
    world.failing = True
    await world.run(timedelta(days=30))
    number = world.book.alerts()[0].id
    assert [(row.state, row.attempts) for row in world.watches.deliveries(number)] == [("pending", 1)]
    await world.run(timedelta(seconds=1))
    assert [row.attempts for row in world.watches.deliveries(number)] == [1], "not before its time"
    world.failing = False
    await world.run(retry_pause(1))
    assert [(row.state, row.attempts) for row in world.watches.deliveries(number)] == [("sent", 2)]
    await world.run()
    assert world.kinds() == ["changed"]


async def test_delivery_is_given_up_in_the_end(world: World, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], replace(SPEC, every=10**8))
    await world.run()
    scripted_site.set("/page", NEW)
    world.failing = True
    await world.run(timedelta(days=1200))
    for attempt in range(1, MAX_ATTEMPTS + 3):
        await world.run(retry_pause(attempt))
    row = world.watches.deliveries(world.book.alerts()[0].id)[0]
    assert (row.state, row.attempts, row.error) == ("failed", MAX_ATTEMPTS, "nobody answers")


async def test_crash_before_judging_tells_after_the_restart(world: World, scripted_site: ScriptedSite) -> None:
    """The check is durable, the judgement is not: the next run judges the same checks."""
    url = scripted_site.set("/page", OLD)
    world.book.add([url], SPEC)
    await world.run()
    scripted_site.set("/page", NEW)

    class Crash(BaseException):
        pass

    def crash(*rows: object) -> None:
        raise Crash

    world.clock.now += HOUR
    async with open_checker(world.archive) as checks:
        work = Watcher(world.archive, checks, Outbox(world.archive, world.send))
        work._record = crash  # type: ignore[assignment, method-assign]
        with pytest.raises(Crash):
            await work.run_due()
    assert world.kinds() == []
    assert world.archive.history(url)[-1].outcome is Outcome.CHANGED
    await world.run(timedelta(seconds=1))
    await world.run()
    assert world.kinds() == ["changed"]


async def test_crash_between_sending_and_noting_repeats_with_the_same_key(
    world: World, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], SPEC)
    await world.run()
    scripted_site.set("/page", NEW)
    outbox = Outbox(world.archive, world.send)
    world.failing = True
    await world.run()
    world.failing = False
    world.clock.now += retry_pause(1)
    row, _ = world.watches.waiting(2**60)[0]
    assert world.watches.claim(row, row.due + 1)
    assert not world.watches.claim(row, row.due + 2), "a claimed delivery is nobody else's"
    world.clock.now += HOUR
    assert await outbox.send_due() == 1
    assert await outbox.send_due() == 0
    assert [message.key for _, message in world.sent] == [f"letopis-alert-{world.book.alerts()[0].id}"]


async def test_real_sinks_take_the_message(world: World, scripted_site: ScriptedSite, tmp_path: Path) -> None:
    hook = scripted_site.url("/hook")
    file = tmp_path / "alerts.jsonl"
    url = scripted_site.set("/page", OLD)
    world.book.add([url], replace(SPEC, notify=(f"file:{file}", hook)))
    await world.run()
    scripted_site.set("/page", NEW)
    world.clock.now += HOUR
    async with open_checker(world.archive) as checks:
        await Watcher(world.archive, checks, Outbox(world.archive)).run_due()
    number = world.book.alerts()[0].id
    states = {row.target: (row.state, row.error) for row in world.watches.deliveries(number)}
    assert states[f"file:{file}"] == ("sent", "")
    assert json.loads(file.read_text())["id"] == f"letopis-alert-{number}"
    assert states[hook][0] == "pending", "the scripted site has no such page"
    assert "404" in states[hook][1]


async def test_private_addresses_by_origin(make_world: Callable[..., World], scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    allowed = make_world(fetch=FetchSettings(private="always"))
    allowed.book.add([url], replace(SPEC, origin="http"))
    allowed.archive.close()
    world = make_world()
    assert [one.check.outcome for one in await world.run()] == [Outcome.REFUSED], "what is allowed is asked each time"
    assert scripted_site.log == []
    with pytest.raises(Refused):
        world.book.add(["http://example.org/"], WatchSpec(origin="http", notify=("file:/tmp/never",)))
    with pytest.raises(Refused, match="private"):
        world.book.add([url], WatchSpec(origin="http"))
    world.archive.close()
    never = make_world(fetch=FetchSettings(private="never"))
    with pytest.raises(Refused, match="private"):
        never.book.add([url], SPEC)


@pytest.mark.parametrize("lost_by", ["retention", "damage"])
async def test_a_page_whose_old_version_is_lost_is_checked_and_told_and_holds_no_other_up(
    make_world: Callable[..., World], scripted_site: ScriptedSite, lost_by: str
) -> None:
    world = make_world(store=StoreSettings(keep_versions=1))
    urls = [scripted_site.set(path, OLD + path.encode()) for path in ("/lost", "/other")]
    world.book.add(urls, SPEC)
    await world.run()
    with Monitor(world.archive, uid="ann") as monitor:
        page = monitor.get(urls[0])
        assert page.changes() == ""
        for path in ("/lost", "/other"):
            scripted_site.set(path, NEW + path.encode())
        if lost_by == "retention":
            world.clock.now += HOUR
            with Monitor(world.archive, uid="bob") as other:
                other.get(urls[0]).check()
            world.archive.compact()
            with pytest.raises(UnknownVersion, match="no longer kept"):
                page.changes()
    if lost_by == "damage":
        world.archive.close()
        [pack] = (world.archive.folder / "packs").glob("*.log")
        stored = pack.read_bytes()
        pack.write_bytes(stored.replace(b"/lost", b"/????"))
        world = make_world()
    looks = {one.watch.url: one.check for one in await world.run(3 * HOUR)}
    assert set(looks) == set(urls)
    assert looks[urls[1]].outcome is Outcome.CHANGED
    told = {message.facts["url"]: message.facts["sentence"] for _, message in world.sent}
    assert "the version that was seen last is no longer kept, or cannot be read" in told[urls[0]]
    assert told[urls[1]].endswith("has changed: 1 line added, 1 removed")
    if lost_by == "damage":
        assert (looks[urls[0]].outcome, looks[urls[0]].meaningful) == (Outcome.CHANGED, None)
        assert world.archive.get(urls[0]).body == NEW + b"/lost"


def test_the_number_of_a_removed_watch_is_given_to_no_other_which_its_alerts_would_name(world: World) -> None:
    pages = [f"http://example.org/{number}" for number in range(3)]
    assert [entry.id for entry in world.book.add(pages[:2], SPEC)] == [1, 2]
    world.book.remove(["2"])
    world.book.add(pages[:1], SPEC)
    world.book.remove(["1"])
    assert next(entry.id for entry in world.book.add(pages[2:], SPEC)) > 2


def test_another_watch_of_a_page_has_the_name_that_was_given(world: World) -> None:
    url, context = "http://example.org/", Context(world.archive, rights=OWN)
    named = [watch_add(context, AddWatches(urls=(url,), another=True, name=name)) for name in ("", "mine", "")]
    assert [row.name for rows in named for row in rows] == ["", "mine", "2"]
    with pytest.raises(UsageError, match="a watch named 'mine' already"):
        watch_add(context, AddWatches(urls=(url,), another=True, name="mine"))


def test_a_watch_that_is_paused_while_its_page_is_checked_stays_paused(world: World) -> None:
    world.book.add(["http://example.org/", "http://example.org/other"], SPEC)
    until = other_due = 2**45
    first, other = world.watches.claim_due(2**44, 10, until)
    world.book.pause([first.url])
    judged = [JudgedWatch(row.state, until, other_due + 1, row.id) for row in (first, other)]
    world.watches.save_judged(judged, [])
    assert [entry.paused for entry in world.book.entries()] == [True, False]
    assert world.watches.part()[1].due == other_due + 1


def test_a_watch_is_taken_by_one_process_at_a_time(world: World) -> None:
    world.book.add(["http://example.org/", "http://example.org/other"], SPEC)
    now = world.watches.part()[0].due
    assert [row.due for row in world.watches.claim_due(now, 1, now + 100)] == [now]
    assert [row.url for row in world.watches.claim_due(now, 10, now + 200)] == ["http://example.org/other"]
    assert world.watches.claim_due(now + 99, 10, now + 300) == []
    assert [row.due for row in world.watches.claim_due(now + 100, 10, now + 300)] == [now + 100], "its process died"


def test_adding_again_keeps_what_is_not_said(world: World) -> None:
    url = "http://example.org/"
    world.book.add([url], replace(SPEC, filters=(("css", "main"),)), "news")
    world.book.add([url], WatchSpec(cron="@daily"))
    watch = world.book.entries()[0].watch
    assert (watch.cron, watch.tag, watch.filters, watch.notify) == ("@daily", "news", (("css", "main"),), SPEC.notify)
    world.book.pause([url])
    world.book.add([url], WatchSpec(every=1200, origin="http"), forgotten=["filters"])
    entry = world.book.entries()[0]
    assert entry.paused
    assert (entry.watch.cron, entry.watch.every, entry.watch.filters) == ("", 1200, ())
    assert (entry.watch.origin, entry.watch.notify_origin) == ("http", "cli"), "its targets are still the owner's"


def test_a_sitemap_that_is_added_again_goes_on_watching_its_pages(world: World) -> None:
    source = "http://example.org/map.xml"
    world.book.add([], SPEC, "site", [source])
    world.book.add([source], WatchSpec(every=1200))
    assert [entry.watch.kind for entry in world.book.entries()] == ["sitemap"]
    world.book.add([source], WatchSpec(), forgotten=["kind"])
    assert [entry.watch.kind for entry in world.book.entries()] == ["page"]


def test_nothing_watched_costs_no_table_and_is_no_error(world: World) -> None:
    assert (world.book.entries(), world.book.alerts(), world.watches.next_due()) == ([], [], None)
    assert world.watches.claim_due(2**60, 10, 2**60) == []
    with pytest.raises(UnknownUrl):
        world.book.remove(["http://example.org/"])
    assert world.archive.catalog.database.one("SELECT count(*) FROM sqlite_master WHERE name = 'watch'") == (0,)


def test_templates_fill_title_and_message(make_world: Callable[..., World]) -> None:
    from letopis.archive.watches import AlertRow
    from letopis.monitor.notifications import notification_of

    row = AlertRow(3, "http://e/", "changed", 0, "It changed", json.dumps({"tag": "t", "difference": "+x"}))
    settings = MonitorSettings(title="[$tag] $kind $unknown", message="$sentence: $difference at $time")
    message = notification_of(row, settings)
    assert message.title == "[t] changed $unknown"
    assert message.body == "It changed: +x at 1970-01-01T00:00:00Z"


async def test_watcher_stops_when_told(world: World, scripted_site: ScriptedSite) -> None:
    world.book.add([scripted_site.set("/page", OLD)], SPEC)
    async with open_checker(world.archive) as checks:
        work = Watcher(world.archive, checks, Outbox(world.archive, world.send), lambda judged: work.stop())
        await work.run()
    assert len(scripted_site.log) == 1


async def test_several_watches_of_one_page_are_judged_each_by_its_own_filters(
    world: World, scripted_site: ScriptedSite
) -> None:
    page = "<p id=price>{price} EUR</p><p id=stock>{stock}</p><p>A lamp for every room of the house.</p>"
    url = scripted_site.set("/lamp", page.format(price=20, stock="In stock").encode())
    world.book.add([url], replace(SPEC, filters=(("css", "#stock"),)))
    cheap = replace(
        SPEC, filters=(("price", "#price"),), conditions=(AlertCondition(AlertConditionKind.BELOW, "15"),)
    )  # fmt: skip
    world.book.add([url], cheap, name="cheap")
    assert [one.check.url for one in await world.run()] == [url, url]
    scripted_site.set("/lamp", page.format(price=18, stock="In stock").encode())
    await world.run()
    assert world.kinds() == []
    scripted_site.set("/lamp", page.format(price=12, stock="In stock").encode())
    await world.run()
    assert [message.facts["name"] for _, message in world.sent] == ["cheap"]
    scripted_site.set("/lamp", page.format(price=12, stock="Sold out").encode())
    await world.run()
    assert [message.facts["name"] for _, message in world.sent] == ["cheap", ""]
    assert len(world.archive.versions(url)) == 4


async def test_notifications_of_quiet_hours_are_sent_when_those_are_over(
    world: World, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/page", OLD)
    start = world.clock.now
    quiet = f"{start:%H:%M}-{start + timedelta(hours=10):%H:%M}"
    world.book.add([url], replace(SPEC, quiet=quiet))
    await world.run()
    scripted_site.set("/page", NEW)
    await world.run()
    assert [row.kind for row in world.book.alerts(url)] == ["changed"]
    await world.run(timedelta(hours=7))
    assert world.sent == []
    Outbox(world.archive, world.send).bring_back()
    await world.run(timedelta(minutes=59))
    assert world.sent == []
    await world.run(timedelta(minutes=2))
    assert world.kinds() == ["changed"]


async def test_headers_of_a_watch_go_with_its_requests(world: World, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], replace(SPEC, headers=(("X-Shop", "prague"),)))
    await world.run()
    sent = next(headers for _, path, headers in scripted_site.log if path == "/page")
    assert sent["x-shop"] == "prague"


async def test_the_password_of_an_address_that_is_watched_signs_in_and_is_not_part_of_it(
    world: World, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/page", OLD)
    (made,) = world.book.add([url.replace("//", "//ada:se%3Acret@")], SPEC)
    await world.run()
    sent = next(headers for _, path, headers in scripted_site.log if path == "/page")
    assert sent["authorization"] == f"Basic {b64encode(b'ada:se:cret').decode()}"
    assert made.watch.url == url
    with pytest.raises(UsageError, match="one by one"):
        world.book.add(["http://a:b@example.org/", "http://c:d@example.com/"], SPEC)


def test_watches_of_one_page_look_at_it_in_one_way(world: World) -> None:
    world.book.add(["http://example.org/"], SPEC)
    with pytest.raises(UsageError, match="must use the same browser and headers"):
        world.book.add(["http://example.org/"], replace(SPEC, headers=(("A", "b"),)), name="other")
    assert len(world.book.entries()) == 1


@pytest.mark.parametrize(
    ("filters", "told"),
    [((("css", ".nothing"),), ["changed"]), ((("css", "h1"),), []), ((("jsonpath", "$.a"),), ["changed"]),
     ((("include", "ERROR"),), []), ((), [])],
)  # fmt: skip
async def test_filters_that_never_select_anything_are_told_at_the_first_look(
    world: World, scripted_site: ScriptedSite, filters: tuple[tuple[str, str], ...], told: list[str]
) -> None:
    url = scripted_site.set("/page", OLD)
    world.book.add([url], replace(SPEC, filters=filters))
    await world.run()
    await world.run()
    assert world.kinds() == told


async def test_alerts_that_a_snooze_or_quiet_hours_held_are_sent_once_these_are_ended(
    world: World, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/page", OLD)
    number = world.book.add([url], SPEC)[0].id
    await world.run()
    world.book.snooze([url], world.clock.now + timedelta(days=1))
    scripted_site.set("/page", NEW)
    await world.run()
    assert world.kinds() == []
    world.book.snooze([url], None)
    await world.run(timedelta())
    assert world.kinds() == ["changed"]
    world.book.edit(number, WatchSpec(quiet="00:00-23:59"), None, None, ())
    scripted_site.set("/page", OLD)
    await world.run()
    world.book.edit(number, WatchSpec(), None, None, ("quiet",))
    await world.run(timedelta())
    assert world.kinds() == ["changed", "changed"]


async def test_what_a_round_waits_for_is_said_once_with_its_reason_and_its_end(
    world: World, scripted_site: ScriptedSite
) -> None:
    busy = scripted_site.set("/a", b"", 429, Retry_After="120")
    world.book.add([busy, scripted_site.set("/b", OLD), scripted_site.set("/c", OLD)], SPEC)
    said: list[str] = []
    async with open_checker(world.archive) as checks:

        def waiting(sentence: str) -> None:
            said.append(sentence)
            work.stop()

        work = Watcher(world.archive, checks, Outbox(world.archive, world.send), waiting=waiting)
        await work.run_due()
    host = busy.split("/")[2]
    assert said == [
        f"{host} is left alone until 2026-01-01T00:02:00Z: its server asked for a pause; waiting for our turn"
    ]
    assert len(scripted_site.log) == 1


def test_a_check_that_comes_too_early_says_why_its_host_is_left_alone(
    world: World, scripted_site: ScriptedSite
) -> None:
    busy, page = scripted_site.set("/a", b"", 429, Retry_After="120"), scripted_site.set("/b", OLD)
    with Monitor(world.archive) as monitor:
        monitor.check_multi([busy])
        (late,) = monitor.look([page], monitor.options)
    assert late.outcome is Outcome.REFUSED
    assert "is left alone until 2026-01-01T00:02:00Z: its server asked for a pause; try again then" in late.error
