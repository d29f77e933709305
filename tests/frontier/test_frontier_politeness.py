import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.config.settings import CrawlSettings
from letopis.frontier.queue import NewUrlShare
from letopis.look.politeness import Bandwidth, FetchResult, Politeness, failures_in_a_row, host_pause, politeness_of


def test_the_longest_of_all_reasons_to_wait_holds() -> None:
    manners = Politeness(delay=1.0, delay_factor=5.0)
    assert host_pause(manners, 0.0, 0, FetchResult(0, seconds=0.1)) == 1000
    assert host_pause(manners, 0.0, 0, FetchResult(0, seconds=2.0)) == 10_000
    assert host_pause(manners, 30.0, 0, FetchResult(0, seconds=2.0)) == 30_000
    assert host_pause(manners, 0.0, 0, FetchResult(0, retry_after=90.0)) == 90_000


def test_no_server_can_ask_for_ever() -> None:
    assert host_pause(Politeness(), 1e9, 0, FetchResult(0)) == 300_000
    assert host_pause(Politeness(), 0.0, 0, FetchResult(0, status=503, retry_after=1e12)) == 86_400_000
    assert host_pause(Politeness(), 0.0, 10**6, FetchResult(0, status=429)) == 3_600_000


def test_pauses_double_with_refusals_and_silence_and_end_with_an_answer() -> None:
    failures, pauses = 0, []
    for status in (429, 503, 0):
        failures = failures_in_a_row(failures, FetchResult(0, status=status))
        pauses.append(host_pause(Politeness(), 0.0, failures, FetchResult(0, status=status)))
    assert pauses == [5000, 10_000, 20_000]
    assert failures_in_a_row(failures, FetchResult(0, status=404)) == 0


def test_bandwidth_is_kept_over_time() -> None:
    bucket, now, sent = Bandwidth(1000), 0, 0
    while sent < 50_000:
        assert bucket.ready_at(now) <= now
        bucket.spend(700, now)
        sent += 700
        now = max(now, bucket.ready_at(now))
    assert now / 1000 == pytest.approx(sent / 1000, abs=2.0)
    assert Bandwidth(0).ready_at(5) == 5


@given(st.floats(0.0, 1.0), st.integers(50, 400))
@settings(max_examples=80)
def test_the_share_is_kept_while_both_kinds_are_ready(wanted: float, fetches: int) -> None:
    share = NewUrlShare(wanted)
    for _ in range(fetches):
        share.note(share.wants_new)
    assert share.shown == pytest.approx(wanted, abs=1.5 / fetches)


def test_a_long_lack_of_one_kind_is_not_made_up_for() -> None:
    share = NewUrlShare(0.5)
    for _ in range(1000):
        share.note(False)
    burst = 0
    while share.wants_new:
        share.note(True)
        burst += 1
    assert burst <= 20


def test_manners_come_from_the_settings() -> None:
    manners = politeness_of(CrawlSettings(delay=2.0, new_share=0.3, max_per_host=7))
    assert (manners.delay, manners.ip_delay, manners.new_share, manners.max_per_host) == (2.0, 2.0, 0.3, 7)
