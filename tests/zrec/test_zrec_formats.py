from __future__ import annotations

import contextlib
from pathlib import Path
from types import ModuleType

import pytest

from letopis.errors import Damaged
from letopis.zrec import ZrecReader, verify

FOLDER = Path(__file__).parents[1] / "formats" / "zrec"
GOLDEN = sorted(path.name for path in FOLDER.glob("golden-*.zrec") if "later" not in path.name)
BROKEN = sorted(path.name for path in FOLDER.glob("broken-*.zrec"))


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_file_reads_as_ever(name: str) -> None:
    with ZrecReader(FOLDER / name) as reader:
        assert b"".join(reader.cat()) == (FOLDER / "golden.txt").read_bytes()
    assert verify(FOLDER / name).faults == ()


def test_golden_history_holds_generations() -> None:
    with ZrecReader(FOLDER / "golden-history.zrec") as reader:
        assert len(reader.journals) >= 1
        assert reader.dictionary
        assert len(set(reader.index.ages.tolist())) > 1


def test_even_fields_of_later_releases_are_skipped() -> None:
    with ZrecReader(FOLDER / "golden-later-field.zrec") as reader:
        assert list(reader.records()) == [b"a: 1", b"a: 2"]


@pytest.mark.parametrize("name", BROKEN)
def test_broken_file_is_refused_for_its_fault(name: str, formats: ModuleType) -> None:
    _, fault = formats.BROKEN[name.removeprefix("broken-").removesuffix(".zrec")]
    assert any(fault in said for said in verify(FOLDER / name).faults)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_file_is_read_or_refused_with_a_sentence(name: str) -> None:
    with contextlib.suppress(Damaged), ZrecReader(FOLDER / name) as reader:
        list(reader.list())
        list(reader.find("1"))


def test_every_fault_has_its_file_and_the_script_makes_it(formats: ModuleType) -> None:
    assert {f"broken-{name}.zrec" for name in formats.BROKEN} == set(BROKEN)
    for name, (make, _) in formats.BROKEN.items():
        if "bomb" not in name:
            assert make() == (FOLDER / f"broken-{name}.zrec").read_bytes()
