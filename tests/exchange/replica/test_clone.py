"""Clones: whole, of a site, of a span, lazy; read, served, refused, detached."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from replica_world import Replica, assert_equal
from served_archive import HTML, PAGE, at, running

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.errors import Busy, NotFound, Refused, Unavailable, UsageError
from letopis.exchange.replica import CloneSelection, PullOptions, clone, detach, fetch_on_demand, publish, pull
from letopis.model import to_millis
from letopis.model.page import NOT_JUDGED


def test_a_clone_equals_its_origin(replica: Replica) -> None:
    report = replica.clone()
    replica.assert_equal()
    assert report.verified
    assert report.absent == 0
    assert report.packs_fetched == 1
    files = sum(path.stat().st_size for path in replica.published.rglob("*") if path.name != ".lock")
    assert report.bytes_downloaded < files * 1.02 + 4000
    assert report.bytes_sent > 0


def test_cloning_again_finds_everything_done(replica: Replica) -> None:
    replica.clone()
    again = replica.clone()
    assert (again.up_to_date, again.requests) == (True, 1)


def test_a_folder_and_a_file_address_serve_as_well(replica: Replica, tmp_path: Path) -> None:
    for number, address in enumerate((str(replica.published), replica.published.as_uri())):
        replica.site.address = address
        replica.clone(path=tmp_path / str(number))
        replica.assert_equal(tmp_path / str(number))


def test_a_server_without_ranges_serves_as_well(replica: Replica, tmp_path: Path) -> None:
    replica.site.ranges = False
    replica.clone()
    replica.assert_equal()
    replica.add(5)
    replica.publish()
    replica.pull()
    replica.assert_equal()
    replica.clone(CloneSelection(site="example.org"), tmp_path / "site")


def test_a_site_that_the_origin_does_not_have_leaves_nothing_behind(
    replica: Replica, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new"):
        with pytest.raises(NotFound, match=r"no page of typo\.example"):
            replica.clone(CloneSelection(site="typo.example"), tmp_path / name)
    assert list((tmp_path / "empty").iterdir()) == []
    assert not (tmp_path / "new").exists()
    assert main(["clone", str(replica.published), str(tmp_path / "new"), "--site", "typo.example"]) == 3
    assert "typo.example" in capsys.readouterr().err
    replica.clone(CloneSelection(site="example.org"), tmp_path / "empty")


def test_a_site_has_its_addresses_only_and_costs_less(replica: Replica) -> None:
    whole = replica.clone(path=replica.folder / "whole")
    report = replica.clone(CloneSelection(site="example.org"))
    with Archive(replica.copy) as copy:
        assert list(copy.verify()) == []
        urls = [row.url for row in copy.catalog.resources.all()]
        assert urls
        assert all(url.startswith("http://example.org/") for url in urls)
        for url in urls:
            assert copy.history(url) == replica.archive.history(url)
            for version in copy.versions(url):
                assert (
                    copy.get(url, version=version.number).body == replica.archive.get(url, version=version.number).body
                )
    assert report.absent == 0
    assert report.bytes_downloaded < whole.bytes_downloaded / 2


def test_a_span_has_whole_histories_and_the_contents_valid_in_it(replica: Replica) -> None:
    replica.clone(CloneSelection(site="example.org", since=to_millis(at(25)), until=to_millis(at(29))))
    with Archive(replica.copy) as copy:
        assert copy.history(PAGE) == replica.archive.answers.history(PAGE), "as recorded: what is judged needs contents"
        assert copy.get(PAGE, version=0).body == HTML % 1
        with pytest.raises(Unavailable, match="fill=True"):
            copy.get(PAGE, version=1)
    assert len([v for v in Archive(replica.copy).versions(PAGE) if v.method == "absent"]) == 1


def test_a_lazy_clone_fetches_what_is_read_and_keeps_it(replica: Replica) -> None:
    report = replica.clone(CloneSelection(lazy=True))
    assert report.absent > 20
    assert report.packs_fetched == report.contents_fetched == 0
    with fetch_on_demand(Archive(replica.copy)) as copy:
        assert list(copy.verify()) == []
        before = len(replica.site.asked)
        assert copy.get(PAGE, version=0).body == HTML % 1
        assert len(replica.site.asked) > before
        before = len(replica.site.asked)
        assert copy.get(PAGE, version=0).body == HTML % 1
        assert len(replica.site.asked) == before
        gone = next(check for check in copy.history(PAGE) if check.status == 404)
        assert copy.answers.error_body(PAGE, gone.checked_at) == b"<h1>gone</h1>"
        assert copy.get("http://big.example/").body.endswith(b"end")
        assert list(copy.verify()) == []
        assert copy.catalog.contents.absent() == report.absent - 3


def test_a_clone_that_lacks_contents_says_the_same_of_a_pair_in_every_door(replica: Replica) -> None:
    replica.clone(CloneSelection(lazy=True))
    with fetch_on_demand(Archive(replica.copy)) as copy:
        before = len(replica.site.asked)
        (row,) = [check for check in copy.history(PAGE) if check.outcome == "changed"][:1]
        assert (row.meaningful, row.score, row.reason) == (None, None, NOT_JUDGED)
        assert len(replica.site.asked) == before, "a list fetches nothing"
        number = row.version or 0
        pair = copy.get(PAGE, version=number - 1), copy.get(PAGE, version=number)
        found = json.loads(copy.difference(*pair, "json"))
        kept = next(check for check in copy.answers.history(PAGE) if check.version == number)
        assert (kept.verdict, kept.score, kept.reason) == (found["verdict"], found["score"], found["reason"])


def test_a_clone_gets_the_verdicts_of_its_origin_without_contents(replica: Replica) -> None:
    replica.clone(CloneSelection(lazy=True))
    judged = replica.archive.history(PAGE)
    assert NOT_JUDGED not in {check.reason for check in judged}
    replica.publish()
    replica.pull()
    with Archive(replica.copy) as copy:
        assert copy.history(PAGE) == judged
        assert copy.catalog.contents.absent() > 0


def test_a_lazy_clone_says_so_when_its_origin_is_away(replica: Replica) -> None:
    replica.clone(CloneSelection(lazy=True))
    replica.site.cut = lambda path, size: 0
    with fetch_on_demand(Archive(replica.copy)) as copy, pytest.raises(Unavailable, match="away"):
        copy.get(PAGE)
    replica.site.cut = lambda path, size: None
    shutil.rmtree(replica.published / "packs")
    with fetch_on_demand(Archive(replica.copy)) as copy, pytest.raises(Unavailable, match=r"replica\.pull"):
        copy.get(PAGE)


def test_a_lazy_clone_notices_wrong_bytes(replica: Replica) -> None:
    replica.clone(CloneSelection(lazy=True))
    replica.site.spoil = lambda path, data: bytes(byte ^ 1 for byte in data) if "packs" in path else data
    with fetch_on_demand(Archive(replica.copy)) as copy:
        for url in (PAGE, "http://sub.example.org/a"):
            with pytest.raises(Exception, match="does not match its index") as caught:
                copy.get(url)
            assert caught.value.exit_status == 6  # type: ignore[attr-defined]
        assert copy.catalog.contents.absent()


def test_filling_makes_a_lazy_clone_whole(replica: Replica) -> None:
    replica.clone(CloneSelection(lazy=True))
    with fetch_on_demand(Archive(replica.copy)) as copy:
        copy.get(PAGE)
    assert replica.pull(fill=True).absent == 0
    replica.assert_equal()
    replica.add(10)
    replica.publish()
    replica.pull()
    replica.assert_equal()


def test_a_clone_records_nothing_until_it_is_detached(replica: Replica) -> None:
    replica.clone()
    with Archive(replica.copy) as copy:
        with pytest.raises(Refused, match=r"replica\.detach"):
            copy.put("http://mine.example/", b"mine")
        with pytest.raises(Refused, match="clone of"):
            copy.compact()
    detach(replica.copy, replica.settings)
    replica.assert_equal()
    with Archive(replica.copy) as own:
        own.put("http://mine.example/", b"mine")
        own.compact(effort="quick")
        assert own.get("http://mine.example/").body == b"mine"
        assert own.get(PAGE, version=0).body == HTML % 1
        assert list(own.verify()) == []
    with pytest.raises(NotFound, match="not a clone"):
        pull(replica.copy, PullOptions(), replica.settings)


def test_a_partial_clone_is_not_detached(replica: Replica) -> None:
    replica.clone(CloneSelection(lazy=True))
    with pytest.raises(Refused, match="fill=True"):
        detach(replica.copy, replica.settings)


def test_a_folder_in_use_is_not_made_a_clone(replica: Replica, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not empty"):
        replica.clone(path=tmp_path / "origin")
    replica.clone()
    with pytest.raises(UsageError, match="another origin or selection"):
        replica.clone(CloneSelection(lazy=True))


def test_nothing_published_makes_nothing(replica: Replica, tmp_path: Path) -> None:
    (replica.published / "release.json").unlink()
    with pytest.raises(NotFound, match="no archive is published"):
        replica.clone()
    assert not replica.copy.exists()


def test_two_pulls_exclude_each_other(replica: Replica) -> None:
    replica.clone()
    replica.add(1)
    replica.publish()

    def second(path: str) -> None:
        replica.site.on_request = lambda path: None
        with pytest.raises(Busy):
            replica.pull()

    replica.site.on_request = second
    replica.pull()
    replica.assert_equal()


def test_a_clone_can_be_published_onward(replica: Replica, tmp_path: Path) -> None:
    replica.clone()
    with Archive(replica.copy) as copy:
        publish(copy, tmp_path / "onward")
    clone(str(tmp_path / "onward"), tmp_path / "third", CloneSelection(), replica.settings)
    replica.assert_equal(tmp_path / "third")


def test_a_partial_clone_is_not_published_onward(replica: Replica, tmp_path: Path) -> None:
    replica.clone(CloneSelection(lazy=True))
    with Archive(replica.copy) as copy, pytest.raises(Refused, match="fill=True"):
        publish(copy, tmp_path / "onward")


@pytest.mark.parametrize("lazy", [False, True])
def test_a_clone_serves_mementos(replica: Replica, lazy: bool) -> None:
    replica.clone(CloneSelection(lazy=lazy))
    with fetch_on_demand(Archive(replica.copy)) as copy, running(copy) as web:
        answer = web.get(f"/web/20240101120000id_/{PAGE}")
        assert answer.body == HTML % 1
        assert answer.headers["memento-datetime"] == "Mon, 01 Jan 2024 12:00:00 GMT"
        assert web.get(f"/web/timemap/link/{PAGE}").text.count("memento") > 3


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*words, "--json", "-q"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_the_three_verbs(replica: Replica, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    origin, www, copy = str(tmp_path / "origin"), str(replica.published), str(replica.copy)
    replica.add(3)
    assert said(capsys, "publish", www, "--archive", origin)["serial"] == 2
    assert said(capsys, "clone", replica.site.address, copy, "--lazy")["absent"] > 0
    assert main(["get", PAGE, "--version", "0", "--archive", copy]) == 0
    assert capsys.readouterr().out.encode() == HTML % 1
    assert main(["get", PAGE, "--archive", copy, "-o", str(tmp_path / "page")]) == 0
    assert said(capsys, "pull", copy, "--fill")["absent"] == 0
    replica.assert_equal()
    assert main(["check", PAGE, "--archive", copy]) == 7
    assert main(["put", PAGE, __file__, "--archive", copy]) == 7
    assert main(["pull", origin]) == 3
    assert main(["clone", "ftp://nowhere/", str(tmp_path / "x")]) == 2
    assert main(["pull", copy, "--detach"]) == 0
    assert main(["put", PAGE, __file__, "--archive", copy]) == 0


def test_times_are_taken_as_people_write_them(
    replica: Replica, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = (at(0) + timedelta(days=1)).strftime("%Y-%m-%d")
    report = said(capsys, "clone", replica.site.address, str(replica.copy), "--to", day)
    assert report["absent"] > 0
    assert report["versions"] == replica.archive.stats().versions


def test_an_empty_archive_is_cloned_and_grows(replica: Replica, tmp_path: Path) -> None:
    with Archive(tmp_path / "empty") as origin:
        publish(origin, tmp_path / "out")
        assert clone(str(tmp_path / "out"), replica.copy, CloneSelection(), replica.settings).versions == 0
        origin.put("http://first.example/", b"first")
        publish(origin, tmp_path / "out")
        assert pull(replica.copy, PullOptions(), replica.settings).versions == 1
        assert_equal(origin, replica.copy)
