"""What a watch is made of: rules, conditions, specifications and their text forms."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.config import MonitorSettings
from letopis.errors import MissingExtra, Refused, UsageError
from letopis.monitor import notifications
from letopis.monitor.watch import (
    AlertCondition,
    AlertConditionKind,
    AlertKind,
    AlertRule,
    WatchedUrl,
    WatchSpec,
    parse_alert_rules,
    settle_watch,
)

SETTINGS = MonitorSettings()
URL = "http://example.org/"


def test_when_of_page_65_is_understood() -> None:
    rules = parse_alert_rules("changed,status,unavailable:3,recovered,redirect,unchanged:7d")
    assert [str(rule.kind) for rule in rules] == [
        "changed", "status", "unavailable", "recovered", "redirect", "unchanged",
    ]  # fmt: skip
    assert (rules[2].amount, rules[5].amount) == (3, 7 * 86400)


@pytest.mark.parametrize(
    "text", ["", "nothing", "unavailable:0", "unavailable:x", "unchanged", "unchanged:x", "changed:3"]
)
def test_refuses_other_words(text: str) -> None:
    with pytest.raises(UsageError):
        parse_alert_rules(text)


rules = st.one_of(
    st.sampled_from([AlertKind.CHANGED, AlertKind.STATUS, AlertKind.RECOVERED, AlertKind.REDIRECT]).map(AlertRule),
    st.integers(1, 9999).map(lambda count: AlertRule(AlertKind.UNAVAILABLE, float(count))),
    st.integers(1, 10**8).map(lambda seconds: AlertRule(AlertKind.UNCHANGED, float(seconds))),
)
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
conditions = st.one_of(
    st.tuples(
        st.sampled_from([AlertConditionKind.CONTAINS, AlertConditionKind.ADDS, AlertConditionKind.REMOVES]), texts
    ).map(lambda pair: AlertCondition(*pair)),
    st.integers(0, 100).map(lambda share: AlertCondition(AlertConditionKind.MORE_THAN, f"{share}%")),
)
specs = st.builds(
    WatchSpec,
    every=st.none() | st.floats(0.1, 1e9),
    cron=st.sampled_from(["", "@daily", "*/5 * * * *"]),
    jitter=st.none() | st.floats(0, 1e6),
    filters=st.lists(st.tuples(st.sampled_from(["css", "ignore"]), texts), max_size=3).map(tuple),
    notify=st.lists(texts, max_size=3).map(tuple),
    when=st.lists(rules, max_size=3, unique=True).map(tuple),
    conditions=st.lists(conditions, max_size=3).map(tuple),
    origin=st.sampled_from(["cli", "http"]),
)


@given(specs)
@settings(max_examples=100, deadline=None)
def test_specification_survives_its_stored_form(spec: WatchSpec) -> None:
    assert WatchSpec.from_json(spec.to_json()) == spec


@given(specs, specs)
@settings(max_examples=60, deadline=None)
def test_interval_is_never_below_the_minimum(spec: WatchSpec, tag: WatchSpec) -> None:
    watch = settle_watch(WatchedUrl(URL), spec, tag, SETTINGS)
    assert watch.every >= SETTINGS.min_interval
    assert watch.when
    assert watch.origin == spec.origin


def test_own_values_win_over_the_tag_and_the_tag_over_settings() -> None:
    tag = WatchSpec(every=600, notify=("file:/t",), when=(AlertRule(AlertKind.STATUS),))
    assert settle_watch(WatchedUrl(URL, tag="t"), WatchSpec(), tag, SETTINGS).every == 600
    assert settle_watch(WatchedUrl(URL, tag="t"), WatchSpec(every=60), tag, SETTINGS).every == 60
    assert settle_watch(WatchedUrl(URL, tag="t"), WatchSpec(cron="@daily"), tag, SETTINGS).cron == "@daily"
    assert settle_watch(WatchedUrl(URL, tag="t"), WatchSpec(), tag, SETTINGS).notify == ("file:/t",)
    assert settle_watch(WatchedUrl(URL), WatchSpec(), None, SETTINGS).every == SETTINGS.every


def test_next_time_by_interval_by_cron_and_with_jitter() -> None:
    now = datetime(2026, 3, 4, 12, 0, 30, tzinfo=UTC)
    plain = settle_watch(WatchedUrl(URL), WatchSpec(every=60, jitter=10), None, SETTINGS)
    assert plain.next_time(now, 0.0) == now + timedelta(seconds=60)
    assert plain.next_time(now, 0.5) == now + timedelta(seconds=65)
    timed = settle_watch(WatchedUrl(URL), WatchSpec(cron="0 * * * *"), None, SETTINGS)
    assert timed.next_time(now, 0.9) == datetime(2026, 3, 4, 13, tzinfo=UTC)


@pytest.mark.parametrize("wrong", [{"every": 0.0}, {"every": -1.0}, {"jitter": -1.0}, {"cron": "never"}])
def test_refuses_impossible_times(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        WatchSpec(**wrong)  # type: ignore[arg-type]


def test_conditions_ask_of_the_difference() -> None:
    added, removed = ["The price is 10"], ["In stock"]

    def holds(kind: AlertConditionKind, value: str) -> bool:
        return AlertCondition(kind, value).holds(added, removed, 0.25)

    assert holds(AlertConditionKind.CONTAINS, "IN STOCK")
    assert holds(AlertConditionKind.ADDS, "price")
    assert not holds(AlertConditionKind.ADDS, "stock")
    assert holds(AlertConditionKind.REMOVES, "stock")
    assert holds(AlertConditionKind.MORE_THAN, "24.9%")
    assert not holds(AlertConditionKind.MORE_THAN, "25")
    for wrong in ("x", "101", "-1"):
        with pytest.raises(UsageError):
            AlertCondition(AlertConditionKind.MORE_THAN, wrong)


def test_targets_are_refused_when_the_watch_is_made() -> None:
    assert notifications.validate_target("https://example.org/hook", "http", "cli") == "https://example.org/hook"
    assert notifications.validate_target("file:/tmp/x", "cli", "cli") == "file:/tmp/x"
    assert notifications.validate_target("file:/tmp/x", "http", "always") == "file:/tmp/x"
    with pytest.raises(Refused, match="owner"):
        notifications.validate_target("file:/etc/passwd", "http", "cli")
    with pytest.raises(UsageError):
        notifications.validate_target("file://elsewhere/x", "cli", "cli")
    with pytest.raises((UsageError, MissingExtra)):
        notifications.validate_target("nonsense", "cli", "cli")
