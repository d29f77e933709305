"""(watch, history, change) -> alerts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.config import MonitorSettings
from letopis.model import Check, Outcome, to_millis
from letopis.monitor.alerts import Alert, WatchDifference, WatchHistory, WatchState, decide_alerts
from letopis.monitor.watch import (
    AlertCondition,
    AlertConditionKind,
    Watch,
    WatchedUrl,
    WatchSpec,
    parse_alert_rules,
    settle_watch,
)

URL = "http://example.org/"
START = datetime(2026, 1, 1, tzinfo=UTC)


def watch(when: str, *conditions: AlertCondition) -> Watch:
    return settle_watch(
        WatchedUrl(URL), WatchSpec(when=parse_alert_rules(when), conditions=conditions), None, MonitorSettings()
    )


def check(minute: int, status: int = 200, final: str = URL, outcome: Outcome = Outcome.UNCHANGED) -> Check:
    available = 0 < status < 400
    return Check(
        URL, final, START + timedelta(minutes=minute), available, status,
        outcome if available else Outcome.UNAVAILABLE, error="" if status else "no answer",
    )  # fmt: skip


def say(
    rules: Watch, state: WatchState, *checks: Check, version: int | None = 1, change: WatchDifference | None = None
) -> tuple[list[str], WatchState]:
    now = checks[-1].checked_at if checks else START
    alerts, after = decide_alerts(rules, WatchHistory(state, checks, version, now), change)
    return [str(alert.kind) for alert in alerts], after


SEEN = WatchState(version=1, changed=to_millis(START))


def test_first_version_is_no_change() -> None:
    said, state = say(watch("changed"), WatchState(), check(0), version=7)
    assert (said, state.version) == ([], 7)


def test_counted_change_is_told_once() -> None:
    rules, change = watch("changed"), WatchDifference(True, ("new",), ("old",), 0.5, "-old\n+new")
    said, state = say(rules, SEEN, check(1, outcome=Outcome.CHANGED), version=2, change=change)
    assert said == ["changed"]
    assert say(rules, state, check(2), version=2)[0] == []


def test_a_change_names_the_version_it_speaks_of_whoever_brought_it() -> None:
    history = WatchHistory(SEEN, (check(1),), 2, START)
    alerts, _ = decide_alerts(watch("changed"), history, WatchDifference(True, ("new",), number=4))
    assert [alert.version for alert in alerts] == [4]


def test_a_change_is_not_told_as_of_a_time_at_which_nobody_had_seen_it() -> None:
    """A version that somebody else saw after the check is compared as of the alert's time."""
    looked, later = check(1), START + timedelta(hours=1)
    for seen, told in ((later, later), (looked.checked_at - timedelta(minutes=1), looked.checked_at)):
        history = WatchHistory(SEEN, (looked,), 2, later)
        alerts, _ = decide_alerts(watch("changed"), history, WatchDifference(True, ("new",), number=4, since=seen))
        assert [alert.time for alert in alerts] == [told]


def test_change_that_does_not_count_is_not_told_but_moves_on() -> None:
    said, state = say(watch("changed"), SEEN, check(1), version=2, change=WatchDifference(False, ("noise",)))
    assert (said, state.version, state.changed) == ([], 2, SEEN.changed)


def test_all_conditions_must_hold() -> None:
    rules = watch(
        "changed", AlertCondition(AlertConditionKind.ADDS, "price"), AlertCondition(AlertConditionKind.MORE_THAN, "10")
    )
    small = WatchDifference(True, ("Price 9",), (), 0.05)
    assert say(rules, SEEN, check(1), version=2, change=small)[0] == []
    assert say(rules, SEEN, check(1), version=2, change=small._replace(share=0.2))[0] == ["changed"]


def test_unavailable_is_told_at_the_third_failure_and_only_once() -> None:
    rules, state, told = watch("unavailable:3,recovered"), SEEN, []
    for minute, status in enumerate([500, 0, 500, 500, 500, 200, 200, 500]):
        said, state = say(rules, state, check(minute, status))
        told.append(said)
    assert told == [[], [], ["unavailable"], [], [], ["recovered"], [], []]


def test_recovery_is_only_told_after_its_alert_but_alone_after_any_failure() -> None:
    one = say(watch("unavailable:3,recovered"), SEEN, check(1, 500), check(2, 200))[0]
    assert one == []
    assert say(watch("recovered"), SEEN, check(1, 500), check(2, 200))[0] == ["recovered"]


def test_status_changes_are_told_and_304_is_200() -> None:
    rules = watch("status")
    state = say(rules, SEEN, check(1, 200))[1]
    assert say(rules, state, check(2, 304))[0] == []
    assert say(rules, state, check(2, 404))[0] == ["status"]
    assert say(rules, state, check(2, 0))[0] == [], "no answer is no status"


def test_redirect_target_is_watched() -> None:
    rules = watch("redirect")
    state = say(rules, SEEN, check(1, final="http://example.org/a"))[1]
    assert say(rules, state, check(2, final="http://example.org/a"))[0] == []
    assert say(rules, state, check(2, final="http://example.org/b"))[0] == ["redirect"]


def test_not_changed_for_a_week_is_told_once_until_it_changes() -> None:
    rules, week = watch("unchanged:7d"), 7 * 24 * 60
    assert say(rules, SEEN, check(week - 1))[0] == []
    said, state = say(rules, SEEN, check(week))
    assert said == ["unchanged"]
    assert say(rules, state, check(week + 1))[0] == []
    state = say(rules, state, check(week + 2), version=2, change=WatchDifference(True))[1]
    assert say(rules, state, check(2 * week), version=2)[0] == []
    assert say(rules, state, check(2 * week + 2), version=2)[0] == ["unchanged"]


def test_checks_by_others_in_between_count() -> None:
    rules = watch("unavailable:2")
    assert say(rules, SEEN, check(1, 500), check(2, 500))[0] == ["unavailable"]


statuses = st.lists(st.sampled_from([200, 304, 404, 500, 0]), min_size=1, max_size=12)


@given(statuses, st.integers(0, 12))
@settings(max_examples=150, deadline=None)
def test_judging_in_one_go_or_in_parts_gives_the_same_alerts(codes: list[int], cut: int) -> None:
    rules = watch("status,unavailable:2,recovered,redirect")
    checks = [check(minute, status) for minute, status in enumerate(codes)]
    whole, end = decide_alerts(rules, WatchHistory(SEEN, checks, 1, START), None)
    first, middle = decide_alerts(rules, WatchHistory(SEEN, checks[:cut], 1, START), None)
    second, last = decide_alerts(rules, WatchHistory(middle, checks[cut:], 1, START), None)
    assert (whole, end) == (first + second, last)


@given(statuses)
@settings(max_examples=60, deadline=None)
def test_state_survives_its_stored_form(codes: list[int]) -> None:
    alerts: list[Alert]
    alerts, state = decide_alerts(
        watch("unavailable"), WatchHistory(SEEN, [check(n, code) for n, code in enumerate(codes)], 1, START), None
    )
    assert WatchState.from_json(state.to_json()) == state
    assert len(alerts) <= len(codes)


def test_alerts_of_a_watch_with_a_name_say_which_one_they_are_of() -> None:
    rules = watch("changed,unavailable")._replace(name="cheap")
    change = WatchDifference(True, ("new",), ("old",))
    alerts, _ = decide_alerts(rules, WatchHistory(SEEN, [check(1)], 2, START), change)
    assert [alert.message for alert in alerts] == [f"{URL} (cheap) has changed: 1 line added, 1 removed"]
    alerts, _ = decide_alerts(rules, WatchHistory(SEEN, [check(1, 0)], 1, START), None)
    assert alerts[0].message.startswith(f"{URL} (cheap) is unavailable now")


def test_other_bytes_without_another_line_are_not_told_as_no_lines() -> None:
    alerts, _ = decide_alerts(watch("changed"), WatchHistory(SEEN, [check(1)], 2, START), WatchDifference(True))
    assert alerts[0].message == f"{URL} has changed: other bytes, the same lines of text"


def test_a_difference_that_cannot_be_seen_is_told_whatever_the_conditions() -> None:
    adds = AlertCondition(AlertConditionKind.ADDS, "sold out")
    change = WatchDifference(True, problem="the JSONPath '$.a' needs a JSON document")
    alerts, _ = decide_alerts(watch("changed", adds), WatchHistory(SEEN, [check(1)], 2, START), change)
    assert [alert.message for alert in alerts] == [f"{URL} has changed: {change.problem}"]


def test_filters_that_select_nothing_are_told_once_until_they_select_something() -> None:
    rules, empty, seen = watch("changed"), WatchDifference(False, empty=True), WatchDifference(False)
    state, told = WatchState(), list[int]()
    for version, change in enumerate((empty, empty, seen, empty, empty), 1):
        said, state = say(rules, state, check(version), version=version, change=change)
        told.append(len(said))
    assert told == [1, 0, 0, 1, 0]
    assert say(watch("status"), WatchState(), check(1), version=1, change=empty)[0] == []


def test_a_chosen_part_that_goes_is_told_even_where_the_conditions_do_not_hold() -> None:
    below = AlertCondition(AlertConditionKind.BELOW, "19")
    gone = WatchDifference(True, (), ("20.00",), empty=True)
    alerts, _ = decide_alerts(watch("changed", below), WatchHistory(SEEN, [check(1)], 2, START), gone)
    assert "shows nothing that the filters of the watch select" in alerts[0].message
    alerts, _ = decide_alerts(watch("changed"), WatchHistory(SEEN, [check(1)], 2, START), gone)
    assert alerts[0].message.endswith("0 lines added, 1 removed; the filters of the watch select nothing now")
