from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

MakeText = Callable[..., bytes]
_FORMATS = Path(__file__).parents[1] / "formats" / "zrec" / "make.py"


@pytest.fixture(scope="session")
def formats() -> ModuleType:
    """The script that makes the golden and broken files."""
    spec = importlib.util.spec_from_file_location("zrec_formats", _FORMATS)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def make_text(formats: ModuleType) -> MakeText:
    return formats.text  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def edited() -> Callable[[bytes, int, int], bytes]:
    """A later state of a text: some records changed, some gone, some new, still ordered."""

    def edit(text: bytes, seed: int, edits: int) -> bytes:
        rng = random.Random(seed)
        records = text.split(b"\n\n")[:-1]
        for _ in range(edits):
            at = rng.randrange(len(records))
            kind = rng.randrange(3)
            if kind == 0:
                records[at] += b"\nNote: %d" % rng.randrange(10**6)
            elif kind == 1 and len(records) > 1:
                del records[at]
            else:
                name = records[at].split(b"\n", 1)[0]
                records.insert(at + 1, name + b"-%d\nVersion: 1" % rng.randrange(10**6))
        return b"\n\n".join(sorted(records)) + b"\n\n"

    return edit
