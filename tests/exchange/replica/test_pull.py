"""Pulls: only differences travel; what is older, tampered with or foreign is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from replica_world import Replica, assert_equal, body
from static_site import nginx_or_plain

from letopis.archive import Archive
from letopis.errors import Damaged, Refused, UsageError
from letopis.exchange.replica import CloneSelection, PullOptions, clone, publish, pull


def test_ten_percent_new_versions_cost_little_more_than_what_is_new(replica: Replica, tmp_path: Path) -> None:
    replica.add(400)
    replica.publish()
    with nginx_or_plain(replica.published, tmp_path / "nginx") as address:
        clone(address, replica.copy, CloneSelection(), replica.settings)
        versions = replica.archive.stats().versions
        replica.add(versions // 10, start=400)
        made = replica.publish()
        report = pull(replica.copy, PullOptions(), replica.settings)
    replica.assert_equal()
    records = made.records - made.records_kept
    new = made.bytes_added + made.index_bytes * records / made.records
    assert 0.9 * new < report.bytes_downloaded + report.bytes_sent < 1.3 * new
    assert report.packs_reused >= 1


def test_a_pull_without_news_is_one_request(replica: Replica) -> None:
    replica.clone()
    report = replica.pull()
    assert (report.up_to_date, report.requests) == (True, 1)


def test_versions_keep_their_ids_so_that_followers_see_only_what_is_new(replica: Replica) -> None:
    replica.clone()
    with Archive(replica.copy) as copy:
        before = {row.id: row for row in copy.catalog.versions.all()}
    replica.add(7)
    replica.archive.compact(effort="quick")
    replica.publish()
    replica.pull()
    with Archive(replica.copy) as copy:
        assert len(copy.catalog.versions.since(max(before))) == 7
        assert {row.id: row for row in copy.catalog.versions.all() if row.id in before} == before


def test_a_compacted_origin_costs_the_index_alone(replica: Replica) -> None:
    replica.add(60)
    replica.publish()
    whole = replica.clone()
    replica.archive.compact(effort="quick")
    replica.publish(grace=0)
    report = replica.pull()
    replica.assert_equal()
    assert report.packs_fetched == report.contents_fetched == 0
    assert report.bytes_downloaded < whole.bytes_downloaded / 3
    replica.add(5, start=60)
    replica.publish()
    replica.pull()
    replica.assert_equal()


def test_repacking_takes_the_compacted_packs_and_gives_space_back(replica: Replica) -> None:
    replica.add(60)
    replica.publish()
    replica.clone()
    replica.archive.compact(effort="quick")
    replica.publish()
    replica.pull()
    before = Archive(replica.copy).stats().pack_bytes
    assert replica.pull(repack=True).packs_fetched >= 1
    assert Archive(replica.copy).stats().pack_bytes < before * 0.6
    replica.assert_equal()


def test_new_versions_inside_compacted_packs_are_taken_by_range(replica: Replica) -> None:
    replica.add(60)
    replica.publish()
    replica.clone()
    replica.add(4, start=60)
    replica.archive.compact(effort="quick")
    replica.publish()
    report = replica.pull()
    assert (report.packs_fetched, report.contents_fetched) == (0, 4)
    replica.assert_equal()


def test_the_full_effort_is_read_by_range_too(tmp_path: Path, replica: Replica) -> None:
    with Archive(tmp_path / "small") as origin:
        for number in range(6):
            origin.put("http://small.example/", body(number))
        publish(origin, tmp_path / "out")
        clone(str(tmp_path / "out"), replica.copy, CloneSelection(), replica.settings)
        origin.put("http://small.example/", body(6))
        origin.put("http://small.example/other", body(7))
        origin.compact()
        publish(origin, tmp_path / "out")
        assert pull(replica.copy, PullOptions(), replica.settings).contents_fetched == 2
        assert_equal(origin, replica.copy)


def test_versions_that_the_origin_dropped_go(replica: Replica) -> None:
    replica.add(80)
    replica.publish()
    replica.clone()
    limited = replace(replica.settings, store=replace(replica.settings.store, keep_versions=1))
    with Archive(replica.folder / "origin", settings=limited, clock=replica.archive.clock) as one:
        assert one.compact(effort="quick").dropped_versions > 0
    replica.publish()
    replica.pull()
    replica.assert_equal()


def test_an_older_release_is_refused_unless_allowed(replica: Replica, tmp_path: Path) -> None:
    shutil.copytree(replica.published, tmp_path / "older")
    replica.add(5)
    replica.publish()
    replica.clone()
    replica.site.folder = tmp_path / "older"
    with pytest.raises(Refused, match="allow_older"):
        replica.pull()
    assert replica.pull(allow_older=True).serial == 1
    with Archive(replica.copy) as copy:
        assert list(copy.verify()) == []
        assert copy.catalog.resources.find("http://new.example/1").checked is None  # type: ignore[union-attr]
    replica.site.folder = replica.published
    assert replica.pull().serial == 2
    replica.assert_equal()


def test_another_archive_at_the_same_address_is_refused(replica: Replica, tmp_path: Path) -> None:
    replica.clone()
    publish(replica.archive, tmp_path / "other")
    replica.site.folder = tmp_path / "other"
    with pytest.raises(Refused, match="another archive"):
        replica.pull()


def test_two_releases_of_one_number_are_refused(replica: Replica) -> None:
    replica.clone()
    path = replica.published / "release.json"
    fields = json.loads(path.read_bytes())
    fields["counts"]["checks"] += 1
    path.write_text(json.dumps(fields))
    with pytest.raises(Damaged, match="two different releases"):
        replica.pull()


def test_signed_releases_need_the_key(replica: Replica) -> None:
    replica.add(1)
    replica.publish(key=b"secret")
    with pytest.raises(Refused, match="not signed with this key"):
        replica.clone(key=b"guess")
    replica.clone(key=b"secret")
    with pytest.raises(UsageError, match=r"PullOptions\(key"):
        replica.pull()
    replica.add(1, start=1)
    replica.publish()
    with pytest.raises(Refused, match="not signed"):
        replica.pull(key=b"secret")
    replica.publish(key=b"secret")
    replica.pull(key=b"secret")
    replica.assert_equal()


@pytest.mark.parametrize("what", ["release", "index", "pack"])
def test_tampered_files_are_refused_and_the_clone_stays_as_it_was(replica: Replica, what: str) -> None:
    replica.clone()
    with Archive(replica.copy) as copy:
        before = copy.catalog.totals()
    replica.add(9)
    replica.publish()
    chosen = {"release": "/release.json", "index": ".zrec", "pack": "/packs/"}[what]
    replica.site.spoil = lambda path, data: _flipped(data) if chosen in path else data
    with pytest.raises(Damaged):
        replica.pull()
    with Archive(replica.copy) as copy:
        assert copy.catalog.totals() == before
        assert list(copy.verify()) == []
    replica.site.spoil = lambda path, data: data
    replica.pull()
    replica.assert_equal()


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def test_an_index_that_names_wrong_contents_is_refused(replica: Replica, tmp_path: Path) -> None:
    """A publisher that is not honest, or damaged: every digest of files is right, a content is another."""
    replica.archive.put("http://swap.example/a", b"one" * 50)
    replica.archive.put("http://swap.example/b", b"two" * 50)
    catalog = replica.archive.catalog
    first, second = (catalog.contents.by_id(row.content) for row in list(catalog.versions.all())[-2:])
    with catalog.transaction() as cursor:
        for row, other in ((first, second), (second, first)):
            cursor.run("UPDATE content SET place = ? WHERE id = ?", (other.place, row.id))
    replica.publish()
    with pytest.raises(Damaged, match="does not match its index"):
        replica.clone()
    assert Archive(replica.copy).stats().versions == 0


def test_a_release_that_promises_more_is_refused(replica: Replica) -> None:
    path = replica.published / "release.json"
    fields = json.loads(path.read_bytes())
    fields["counts"]["versions"] += 1
    path.write_text(json.dumps(fields))
    with pytest.raises(Damaged, match="counts"):
        replica.clone()


def test_a_publish_between_two_requests_is_followed(replica: Replica) -> None:
    replica.clone()
    replica.add(3)
    replica.publish()

    def republish(path: str) -> None:
        if path.endswith(".zrec"):
            replica.site.on_request = lambda path: None
            replica.add(3, start=3)
            replica.publish(grace=0)
            (replica.published / "index-00000002.zrec").unlink()

    replica.site.on_request = republish
    assert replica.pull().serial == 3
    replica.assert_equal()
