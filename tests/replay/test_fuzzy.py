"""Addresses that mean one thing though they differ are answered with what was captured of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from letopis.archive import Archive
from letopis.archive.captures import CaptureList, KeyRange
from letopis.replay.captures import similar_keys
from letopis.urls import surt


@pytest.mark.parametrize(
    ("captured", "asked"),
    [
        ("https://ssl.google-analytics.com/ga.js", "http://www.google-analytics.com/ga.js"),
        ("http://www.google-analytics.com/ga.js?_=12345", "https://ssl.google-analytics.com/ga.js?_=67890"),
        ("http://b.scorecardresearch.com/beacon.js", "https://sb.scorecardresearch.com/beacon.js"),
        ("https://a.example/s?id=7", "https://a.example/s?ancestor_origins=http%3A%2F%2Freplay.example&id=7"),
        ("https://a.example/lib.js?_=1712345678901", "https://a.example/lib.js?_=1812345678901"),
        ("https://a.example/prices?t=1712345678901", "https://a.example/prices?t=1812345678901"),
    ],
)
def test_what_means_the_same_is_found(tmp_path: Path, captured: str, asked: str) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.put(captured, b"kept", datetime(2026, 1, 1, tzinfo=UTC), content_type="text/javascript")
        assert similar_keys(archive.attached(CaptureList), surt(asked)) == KeyRange.exactly(surt(captured))


@pytest.mark.parametrize(
    "asked",
    [
        "https://a.example/other.js?_=12345",
        "https://a.example/topic?t=12345",
        "https://a.example/style?v=1812345678901",
        "http://ssl.google-analytics.com/other.js",
        "https://a.example/lib.js",
    ],
)
def test_what_means_something_else_is_not(tmp_path: Path, asked: str) -> None:
    with Archive(tmp_path / "a") as archive:
        for url in (
            "https://a.example/lib.js?id=7",
            "https://a.example/topic?t=12346",
            "https://a.example/style?v=1712345678901",
            "https://ssl.google-analytics.com/ga.js",
        ):
            archive.put(url, b"kept", datetime(2026, 1, 1, tzinfo=UTC), content_type="text/javascript")
        assert similar_keys(archive.attached(CaptureList), surt(asked)) is None
