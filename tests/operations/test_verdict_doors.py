"""One verdict a pair: history, checks, compare, watches, feeds and followers say the same of it, in the same words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from scripted_site import ScriptedSite
from served_archive import WebClient, at, running
from written_warc import response

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.accounts import accounts_of
from letopis.archive.verdicts import judged
from letopis.archive.watches import watched_pages
from letopis.cli import main
from letopis.config import FetchSettings, MonitorSettings, Settings
from letopis.errors import NotFound, UsageError
from letopis.model import Check
from letopis.model.page import NOT_JUDGED
from letopis.monitor.checker import CheckOptions
from letopis.monitor.views import watch_difference
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.operations import Context, bind
from letopis.operations.checks import PageListQuery, check_pages, history
from letopis.operations.muting import MutedQuery, mute_add, mute_list, mute_remove, muted
from letopis.operations.pages import put
from letopis.operations.totals import changes
from letopis.web.pages import url_in_path

OPEN = Settings(fetch=FetchSettings(private="always"), monitor=MonitorSettings(min_interval=0, delay=0))
BODY = "".join(f"<p>Standing paragraph {n} tells of the town and of its people.</p>" for n in "abcdefgh")


class Watched:
    """A page on a real server, an archive that looks at it, and the archive's own server."""

    def __init__(self, site: ScriptedSite, archive: Archive, web: WebClient) -> None:
        self.site, self.archive, self.web = site, archive, web
        self.url = site.url("/page")
        self.context = Context(archive, user="", rights=READ | WRITE | OWN, private_ok=True)
        token = accounts_of(archive).create_token("all", None, "write", 0)
        self.head = {"Authorization": f"Bearer {token}"}

    def look(self, body: str) -> Check:
        self.site.set("/page", body.encode())
        return check_pages(self.context, [self.url], CheckOptions(now=True, private_ok=True))[0]

    def rest(self, path: str) -> Any:
        return self.web.get(f"/api/v1{path}", **self.head).json()

    def page(self, path: str) -> str:
        return self.web.get(path, **self.head).text


@pytest.fixture
def watched(tmp_path: Path, scripted_site: ScriptedSite) -> Iterator[Watched]:
    with Archive(tmp_path / "archive", settings=OPEN) as archive, running(archive) as web:
        yield Watched(scripted_site, archive, web)


def visible(page: str) -> str:
    return " ".join(page.split())


@pytest.mark.parametrize(
    ("before", "after", "verdict", "reason"),
    [
        ("<p>Seen 14:05</p>", "<p>Seen 14:06</p>", "noise", "only clocks and counters"),
        ("<p>Mayor stays</p>", "<p>Mayor leaves his office today</p>", "changed", "text: 1 added, 1 removed"),
    ],
)
def test_every_door_shows_the_verdict_that_was_stored(
    watched: Watched, capsys: pytest.CaptureFixture[str], before: str, after: str, verdict: str, reason: str
) -> None:
    watched.look(before + BODY)
    check = watched.look(after + BODY)
    assert (check.verdict, check.reason) == (verdict, reason)
    row = history(watched.context, PageListQuery(url=watched.url)).rows[-1]
    assert (row.verdict, row.score, row.reason) == (verdict, check.score, reason)
    over_http = watched.rest(f"/history?url={watched.url}")["history"][-1]
    assert (over_http["verdict"], over_http["score"], over_http["reason"]) == (verdict, check.score, reason)
    assert main(["--archive", str(watched.archive.folder), "history", watched.url]) == 0
    assert reason in capsys.readouterr().out
    followed = list(changes(watched.context, bind(changes.parameters, {"client": "anna"}, at(0))))[-1]
    assert (followed.verdict, followed.score, followed.reason) == (verdict, check.score, reason)
    old, new = _pair(watched)
    difference = json.loads(watched.archive.difference(old, new, "json"))
    assert (difference["verdict"], difference["score"], difference["reason"]) == (verdict, check.score, reason)
    inside = url_in_path(watched.url)
    for path in (f"/url/{inside}", f"/compare/{inside}"):
        shown = visible(watched.page(path))
        assert reason in shown, path
        assert f">{verdict}</span>" in shown, path
    assert f"changes {int(verdict == 'changed')}, new pages 1" in watched.page("/")
    feed = watched.web.get(f"/feed/{inside}", **watched.head).text
    assert (reason in feed) == (verdict == "changed")
    seen = _watch_difference(watched, WatchSpec(), check)
    assert (seen.counts, seen.score, seen.reason) == (verdict == "changed", check.score, reason)


def _pair(watched: Watched) -> Any:
    return watched.archive.get(watched.url, version=0), watched.archive.get(watched.url, version=1)


def _watch_difference(watched: Watched, spec: WatchSpec, check: Check) -> Any:
    entry = WatchList(watched.archive).add([watched.url], spec)[0]
    rows = watched.archive.catalog.versions.of(watched.archive.answers.resource(watched.url).id)
    return watch_difference(watched.archive, entry.watch, rows[0].id, rows[-1].id, [check])


def test_a_version_that_was_put_is_judged_and_its_verdict_kept(watched: Watched) -> None:
    url = "http://example.org/put"
    for body in (BODY, BODY + "<p>The mill burned down last night.</p>"):
        put(watched.context, bind(put.parameters, {"url": url, "file": body.encode()}, at(0)))
    kept = watched.archive.history(url)[-1]
    assert (kept.verdict, kept.reason) == ("changed", "text: 1 added")
    assert kept.reason in watched.page(f"/compare/{url_in_path(url)}")


def test_a_version_that_came_in_by_an_import_is_judged_at_the_first_question_and_alike_from_then_on(
    watched: Watched,
) -> None:
    url = "http://example.org/imported"
    watched.archive.put(url, ("<p>Seen 14:05</p>" + BODY).encode(), at(0))
    watched.archive.put(url, ("<p>Seen 14:06</p>" + BODY).encode(), at(1))
    assert watched.archive.answers.history(url)[-1].meaningful is None, "nobody has asked"
    assert "only clocks and counters" in watched.page(f"/compare/{url_in_path(url)}")
    kept = watched.archive.history(url)[-1]
    assert (kept.verdict, kept.score, kept.reason) == ("noise", 0.0, "only clocks and counters")


def test_a_version_with_another_neighbour_is_judged_anew(watched: Watched) -> None:
    url = "http://example.org/late"
    for body, minute in (("<p>Seen 14:05</p>" + BODY, 0), ("<p>Seen 14:06</p>" + BODY, 10)):
        put(watched.context, bind(put.parameters, {"url": url, "file": body.encode(), "at": at(minute)}, at(20)))
    assert watched.archive.history(url)[-1].verdict == "noise"
    watched.archive.put(url, b"<p>Another page stood here for a while, of the weather.</p>", at(5))
    assert watched.archive.answers.history(url)[-1].meaningful is None, "nobody has asked"
    pair = watched.archive.get(url, version=1), watched.archive.get(url, version=2)
    assert json.loads(watched.archive.difference(*pair, "json"))["verdict"] == "changed"
    assert watched.archive.history(url)[-1].verdict == "changed"


def test_compare_opened_from_a_watch_keeps_its_filter(watched: Watched) -> None:
    watched.look(f'<h1>Old title</h1><div id="price">19.90</div>{BODY}')
    check = watched.look(f'<h1>Other title</h1><div id="price">17.50</div>{BODY}')
    seen = _watch_difference(watched, WatchSpec(filters=(("css", "#price"),)), check)
    inside = url_in_path(watched.url)
    assert f"/compare/{inside}?to=" in watched.page("/watches")
    number = watched.page("/watches").partition("&amp;filter=")[2].partition('"')[0]
    through = visible(watched.page(f"/compare/{inside}?filter={number}"))
    assert "Other title" not in through.partition('class="sheet')[2]
    assert "<del>19.90</del> <ins>17.50</ins>" in through
    assert seen.reason in through
    assert f"filter={number}" in through.partition('class="tabs"')[2]
    assert seen.reason in visible(watched.page(f"/compare/{inside}?filter=watch")), "links of an earlier release"
    assert "Other" in visible(watched.page(f"/compare/{inside}")).partition('class="sheet')[2]


COUNTED = "<p>Visitors so far: {}</p>" + BODY


def test_muted_changes_are_named_and_can_be_undone(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(10, 20):
        check = watched.look(COUNTED.format(number))
    assert (check.verdict, check.muted) == ("noise", ("counter: Visitors so far: 19", "counter: Visitors so far: 18"))
    rows = list(muted(watched.context, bind(muted.parameters, {"url": watched.url}, at(0))))
    assert (rows[0].why, rows[0].text, rows[0].version) == ("counter", "Visitors so far: 19", 9)
    shown = visible(watched.page(f"/compare/{url_in_path(watched.url)}"))
    assert "2 frequent changes muted" in shown
    command = ["--archive", str(watched.archive.folder), "mute", "add", watched.url, rows[0].text, "--kind", "never"]
    assert main(command) == 0
    assert "never muted" in capsys.readouterr().out
    assert watched.look(COUNTED.format(20)).verdict == "changed"


def test_a_text_is_muted_on_a_page_or_a_whole_host_through_every_door(watched: Watched) -> None:
    text, host = "Visitor number {} of our park", watched.url.split("/")[2]
    watched.look(f"<p>{text.format(1)}</p>{BODY}")
    assert watched.look(f"<p>{text.format(2)}</p>{BODY}").verdict == "changed"
    body = {"place": host, "text": text.format(7)}
    assert watched.web.post("/api/v1/mutes", body, **watched.head).json()["kind"] == "always"
    check = watched.look(f"<p>{text.format(3)}</p>{BODY}")
    assert (check.verdict, check.reason) == ("noise", "only what was muted")
    rule = next(iter(mute_list(watched.context, bind(mute_list.parameters, {}, at(0)))))
    assert (rule.place, rule.kind, rule.text) == (host, "always", text.format(7))
    place = {"place": watched.url, "text": text.format(1), "kind": "never"}
    mute_add(watched.context, bind(mute_add.parameters, place, at(0)))
    assert watched.look(f"<p>{text.format(4)}</p>{BODY}").verdict == "changed"
    mute_remove(watched.context, bind(mute_remove.parameters, {"place": host, "text": text.format(5)}, at(0)))
    with pytest.raises(NotFound, match="mute list"):
        mute_remove(watched.context, bind(mute_remove.parameters, {"place": host, "text": text.format(5)}, at(0)))
    with pytest.raises(UsageError, match="letters or digits"):
        mute_add(watched.context, bind(mute_add.parameters, {"place": host, "text": "..."}, at(0)))


def test_what_never_counts_is_listed_with_its_reason(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.look("<p>Generated at 10:00:01</p>" + BODY)
    check = watched.look("<p>Generated at 10:07:45</p>" + BODY)
    assert (check.verdict, check.reason, check.muted) == ("noise", "only clocks and counters", ())
    assert main(["--archive", str(watched.archive.folder), "--json", "muted", watched.url]) == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (row["version"], row["why"], row["text"]) == (check.version, check.reason, "Generated at 10:07:45")


IMPORTED = "http://example.org/imported"
FIRST_QUESTIONS: dict[str, Callable[[Watched], tuple[str, str]]] = {
    "history": lambda asked: _said(history(asked.context, PageListQuery(url=IMPORTED)).rows[-1]),
    "python": lambda asked: _said(asked.archive.history(IMPORTED)[-1]),
    "changes": lambda asked: _said(list(changes(asked.context, bind(changes.parameters, {"client": "a"}, at(0))))[-1]),
    "muted": lambda asked: ("noise", next(iter(muted(asked.context, MutedQuery(url=IMPORTED)))).why),
    "page": lambda asked: _in_page(asked.page(f"/url/{url_in_path(IMPORTED)}")),
    "watches": lambda asked: _in_watches(watched_pages(asked.archive, [IMPORTED])[0].change),
    "overview": lambda asked: ("noise" if ">noise</span>" in asked.page("/") else "", CLOCKS),
    "feed": lambda asked: ("" if IMPORTED + " changed" in asked.page(f"/feed/{IMPORTED}") else "noise", CLOCKS),
}
CLOCKS = "only clocks and counters"


def _said(row: Any) -> tuple[str, str]:
    return row.verdict, row.reason


def _in_watches(change: Any) -> tuple[str, str]:
    return "noise" if change.meaningful is False else "changed", change.reason


def _in_page(page: str) -> tuple[str, str]:
    return "noise" if page.count(">noise</span>") == 2 else page, CLOCKS if CLOCKS in page else ""


@pytest.mark.parametrize("door", FIRST_QUESTIONS)
def test_the_first_question_about_imported_versions_is_answered_like_all_others(
    watched: Watched, tmp_path: Path, door: str
) -> None:
    bodies = [f"<p>Seen 14:0{minute}</p>{BODY}".encode() for minute in (5, 6)]
    dated = zip(("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"), bodies, strict=True)
    (tmp_path / "old.warc").write_bytes(b"".join(response(IMPORTED, *one) for one in dated))
    assert main(["--archive", str(watched.archive.folder), "-q", "import", str(tmp_path / "old.warc")]) == 0
    assert FIRST_QUESTIONS[door](watched) == ("noise", CLOCKS)
    assert _said(watched.archive.answers.history(IMPORTED)[-1]) == ("noise", CLOCKS), "it is kept"


def test_what_the_time_of_a_question_does_not_suffice_for_is_not_judged_yet_in_every_door(watched: Watched) -> None:
    for minute in range(10, 16):
        watched.archive.put(IMPORTED, f"<p>Seen 14:{minute}</p>{BODY}".encode(), at(minute))
    clock = count(0, 7.5)  # each pair takes 7.5 seconds of it
    rows = list(judged(watched.archive, watched.archive.answers.history(IMPORTED), lambda: next(clock)))
    assert [_said(row) for row in rows] == [("new", "")] + [("noise", CLOCKS)] * 3 + [("changed", NOT_JUDGED)] * 2
    assert watched.archive.answers.history(IMPORTED) == rows, "what was reached is kept, what was not is told alike"
    pair = watched.archive.get(IMPORTED, version=4), watched.archive.get(IMPORTED, version=5)
    assert json.loads(watched.archive.difference(*pair, "json"))["reason"] == CLOCKS
    said = [("noise", CLOCKS), ("changed", NOT_JUDGED), ("noise", CLOCKS)]
    assert list(map(_said, watched.archive.answers.history(IMPORTED)[3:])) == said, "what compare found is kept"
    again = judged(watched.archive, watched.archive.answers.history(IMPORTED), lambda: next(clock))
    assert {_said(row) for row in again} == {("new", ""), ("noise", CLOCKS)}, "the next question goes on from there"


def test_a_check_that_the_record_answers_gives_the_verdict_of_history(tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=Settings(monitor=MonitorSettings(min_interval=86400))) as archive:
        for minute in (5, 6):
            body = f"<p>Seen 14:0{minute}</p>{BODY}".encode()
            archive.put(IMPORTED, body, archive.clock() - timedelta(minutes=10 - minute))
        context = Context(archive, user="", rights=READ | WRITE, private_ok=True)
        (check,) = check_pages(context, [IMPORTED], CheckOptions())
        assert (check.cached, *_said(check)) == (True, "noise", CLOCKS)
