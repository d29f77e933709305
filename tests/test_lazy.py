"""A module that is loaded late is whole for whoever uses it."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from letopis.lazy import lazy, lazy_pattern


def test_threads_that_use_a_module_while_it_is_loaded_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late_made.py").write_text("import threading\nthreading.Event().wait(0.2)\nvalue = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = lazy("late_made")
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda _: module.value, range(8))) == [7] * 8
    del sys.modules["late_made"]


def test_a_lazy_pattern_searches_as_a_compiled_one() -> None:
    lazily, compiled = lazy_pattern(r"a(\d+)"), re.compile(r"a(\d+)")
    for _ in range(2):
        assert lazily.findall("a1 b2 a34") == compiled.findall("a1 b2 a34")
    assert lazily.pattern == compiled.pattern
