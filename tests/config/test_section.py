"""Sections are frozen dataclasses in all that their users see."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from typing import Any

import pytest

from letopis.config import FetchSettings, Settings, StoreSettings, load_settings
from letopis.errors import SettingError


def test_a_section_is_made_changed_and_compared_like_a_dataclass() -> None:
    quick = FetchSettings(total=3.0)
    assert is_dataclass(quick)
    assert "total" in [row.name for row in fields(quick)]
    assert (quick.total, quick.retries) == (3.0, FetchSettings().retries)
    assert replace(quick, total=FetchSettings().total) == FetchSettings() != quick
    assert len({FetchSettings(), FetchSettings(), quick}) == 2


def test_sections_of_different_kinds_are_never_equal() -> None:
    assert FetchSettings() != StoreSettings()


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        FetchSettings().total = 1.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del FetchSettings().total


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="FetchSettings has no setting totl"):
        FetchSettings(totl=1.0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("section", "values"),
    [
        (FetchSettings, {"max_bytes": -1}), (FetchSettings, {"max_bytes": "10"}), (FetchSettings, {"retries": 1.5}),
        (FetchSettings, {"total": float("nan")}), (FetchSettings, {"total": float("inf")}),
        (FetchSettings, {"max_hops": True}), (FetchSettings, {"verify_tls": "false"}),
        (FetchSettings, {"private": "sometimes"}), (FetchSettings, {"retry_status": "502"}),
        (StoreSettings, {"level": 7}), (StoreSettings, {"url": None}),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_in_python_too(
    section: type[FetchSettings | StoreSettings], values: dict[str, Any]
) -> None:
    with pytest.raises(SettingError, match="does not fit"):
        section(**values)
    with pytest.raises(SettingError, match="does not fit"):
        replace(section(), **values)


def test_settings_travel_to_other_processes() -> None:
    changed = replace(Settings(), fetch=FetchSettings(retries=7))
    assert pickle.loads(pickle.dumps(changed)) == changed


def test_the_repr_names_what_is_set() -> None:
    assert "retries=7" in repr(FetchSettings(retries=7))


def test_settings_are_the_same_in_another_process() -> None:
    settings = load_settings(None, {"LETOPIS_CRAWL_DELAY": "7"})
    again = pickle.loads(pickle.dumps(settings))
    assert again == settings
    assert again.crawl.delay == 7
