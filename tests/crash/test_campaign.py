"""The campaign of `make campaign`: a few tries of each row, and what is written down of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import campaign
import campaign_results
import pytest
import reliability_page
from fault_points import Kill, Say, run_killed
from killed_verbs import KINDS, KilledVerbs, small_site
from reliability_promises import PROMISES
from soak import Sample, SoakReport, soak

from letopis.archive import Archive

pytestmark = pytest.mark.files


@pytest.fixture(scope="module")
def verbs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KilledVerbs]:
    folder = tmp_path_factory.mktemp("verbs")
    with small_site(folder / "site") as site:
        yield KilledVerbs(folder / "world", site)


@pytest.mark.parametrize("number", range(len(KINDS)), ids=list(KINDS))
def test_a_process_of_any_kind_that_is_killed_leaves_what_it_promised_and_can_be_run_again(
    verbs: KilledVerbs, number: int
) -> None:
    verbs.kill_one(number)


@pytest.mark.parametrize("row", ["histories", "damages"])
def test_tries_are_clean_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    monkeypatch.setattr(campaign_results, "RESULTS", tmp_path / "results.json")
    for tries in (1, 2):
        assert campaign.run_rows([row], 300.0, tries) == 0
    found = campaign_results.read_results()[row]
    assert (found.count, found.found, found.figures["next"]) == (3, 0, 3)


def test_a_fault_is_counted_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_results, "RESULTS", tmp_path / "results.json")

    def one(number: int) -> int:
        assert number != 1, "lost"
        return 1

    assert [campaign._tried("histories", one) for _ in range(3)] == [0, 1, 0]
    assert campaign_results.read_results()["histories"].found == 1


def test_a_process_is_killed_at_the_call_that_is_named(tmp_path: Path) -> None:
    def work(say: Say) -> None:
        with Archive(tmp_path / "a") as archive:
            for number in range(3):
                archive.put(f"http://a.example/{number}", b"text")
                say(str(number))

    whole = run_killed(work, Kill())
    assert (whole.killed, whole.said) == (False, ["0", "1", "2"])
    assert run_killed(work, Kill(1)) == (True, [], 0)
    assert run_killed(work, Kill(whole.calls + 99)).killed is False


def test_a_short_soak_is_clean(tmp_path: Path) -> None:
    report = soak(tmp_path, 5.0, 0.0, seed=5)
    assert report.faults == []
    assert report.samples


def test_growth_over_a_long_soak_is_a_fault() -> None:
    flat = SoakReport(seconds=3600.0, samples=[Sample(100.0, 30)] * 50)
    flat.judge()
    assert flat.faults == []
    grown = SoakReport(seconds=3600.0, samples=[Sample(100.0 + n, 30 + n) for n in range(50)])
    grown.judge()
    assert len(grown.faults) == 2


def test_every_test_that_the_page_of_reliability_names_is_there() -> None:
    code = "\n".join(file.read_text() for file in Path(__file__).parents[1].rglob("test_*.py"))
    named = {test for promise in PROMISES for test in promise.tests}
    assert {test for test in named if f"def {test}(" not in code} == set()


def test_the_page_of_reliability_is_what_its_counts_say() -> None:
    rows = campaign_results.read_results()
    assert reliability_page.PAGE.read_text() == reliability_page.page_text(rows)
    assert {name: one.found - one.mended for name, one in rows.items() if one.found != one.mended} == {}
