from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from letopis.binary import file_sha256
from letopis.errors import Damaged, NewerFormat, NotFound, NotReady, Refused, UsageError
from letopis.zrec import ZrecReader, pack, published_file, verify, write_release
from letopis.zrec.header import chunk_hash

MakeText = Callable[..., bytes]
Edited = Callable[[bytes, int, int], bytes]


def whole(path: Path) -> bytes:
    with ZrecReader(path) as reader:
        return b"".join(reader.cat())


@pytest.mark.parametrize("group", ["1", "2-4"])
def test_cat_gives_back_the_text_and_get_each_record(tmp_path: Path, make_text: MakeText, group: str) -> None:
    text = make_text(300)
    packed = pack(text, tmp_path / "a.zrec", group=group)
    records = text.split(b"\n\n")[:-1]
    assert packed.records == 300
    with ZrecReader(packed.path) as reader:
        assert b"".join(reader.cat()) == text
        assert list(reader.records()) == records
        for record in records[::7]:
            name = record.split(b"\n", 1)[0].removeprefix(b"Package: ").decode()
            assert reader.get(name) == record
        with pytest.raises(NotFound, match="nothing-such"):
            reader.get("nothing-such")


@given(text=st.text(alphabet="ab:\n ", max_size=120).map(str.encode), group=st.sampled_from(["1", "2-4"]))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_text_survives(tmp_path: Path, text: bytes, group: str) -> None:
    packed = pack(text, tmp_path / "any.zrec", group=group, new_dict=True)
    assert whole(packed.path) == text
    assert verify(packed.path).faults == ()


def test_a_record_costs_a_logarithm_of_chunks(tmp_path: Path, make_text: MakeText) -> None:
    packed = pack(make_text(1000), tmp_path / "a.zrec")
    with ZrecReader(packed.path) as reader:
        decoded: list[int] = []
        decode = reader.text
        reader.text = lambda number: decoded.append(number) or decode(number)  # type: ignore[method-assign,func-returns-value]
        name = reader.namer(reader.chunk(777)[0])
        decoded.clear()
        reader.get(name)
        assert len(decoded) <= 12


def test_records_of_one_name_are_all_found(tmp_path: Path) -> None:
    lines = sorted(b"key%02d %d" % (n // 3, n) for n in range(90))
    pack(lines, tmp_path / "a.zrec", separator=b"\n", name_regex=r"^\S+")
    with ZrecReader(tmp_path / "a.zrec") as reader:
        assert list(reader.find("key07")) == [line for line in lines if line.startswith(b"key07 ")]
        assert reader.get("key00") == lines[0]


def test_unordered_records_are_searched_from_the_start(tmp_path: Path) -> None:
    pack(b"b: 9\n\na: 1\n\nc: 5\n\n", tmp_path / "a.zrec")
    with ZrecReader(tmp_path / "a.zrec") as reader:
        assert not reader.header.ordered
        assert [reader.get(name) for name in ("1", "5", "9")] == [b"a: 1", b"c: 5", b"b: 9"]


def test_same_input_gives_the_same_bytes(tmp_path: Path, make_text: MakeText, edited: Edited) -> None:
    text = make_text(400)
    later = edited(text, 1, 20)
    files = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "a.zrec"
        pack(text, path)
        first = path.read_bytes()
        pack(later, path)
        files.append((first, path.read_bytes()))
        pack(later, path)
        assert path.read_bytes() == files[-1][1]
    assert files[0] == files[1]


@pytest.mark.parametrize("group", ["1", "2-4"])
def test_unchanged_chunks_keep_their_bytes(tmp_path: Path, make_text: MakeText, edited: Edited, group: str) -> None:
    text = make_text(400)
    old = pack(text, tmp_path / "old.zrec", group=group)
    new = pack(edited(text, 3, 10), tmp_path / "new.zrec", group=group, dict_from=old.path)
    assert new.dictionary_kept
    with ZrecReader(old.path) as one, ZrecReader(new.path) as two:
        before = {one.stored_chunk(n) for n in range(len(one.index))}
        after = [two.stored_chunk(n) in before for n in range(len(two.index))]
        assert after.count(False) <= 10 * (1 if group == "1" else 5)
        assert sum(after) == new.chunks_kept
        fresh = [n for n, kept in enumerate(after) if not kept]
        ages = two.index.ages.tolist()
        assert [n for n, age in enumerate(ages) if age == 0] == fresh


def test_a_changed_record_moves_no_border(tmp_path: Path, make_text: MakeText) -> None:
    text = make_text(200)
    records = text.split(b"\n\n")[:-1]
    records[77] += b"\nMore: yes"
    old = pack(text, tmp_path / "old.zrec", group="2-4")
    new = pack(records, tmp_path / "new.zrec", group="2-4", dict_from=old.path)
    with ZrecReader(old.path) as one, ZrecReader(new.path) as two:
        assert [row.records for row in one.list()] == [row.records for row in two.list()]
    assert new.chunks - new.chunks_kept == 1


def test_new_dict_starts_afresh(tmp_path: Path, make_text: MakeText) -> None:
    path = tmp_path / "a.zrec"
    pack(make_text(200), path)
    pack(make_text(250), path)
    again = pack(make_text(250), path, new_dict=True)
    assert not again.dictionary_kept
    with ZrecReader(path) as reader:
        assert reader.journals == []


def test_never_overwrites_what_is_no_zrec_file(tmp_path: Path) -> None:
    path = tmp_path / "precious.txt"
    path.write_bytes(b"precious")
    with pytest.raises(Damaged, match="start afresh with a new dictionary"):
        pack(b"a: 1\n\n", path)
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("wrong", [{"group": "3"}, {"separator": b""}, {"name_regex": "(("}, {"name_regex": "nowhere"}])
def test_refuses_what_makes_no_sense(tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        pack(b"a: 1\n\n", tmp_path / "a.zrec", **wrong)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("records", [[b"a\n\nb"], [b"a", b""], [b"a\n", b"b"]])
def test_refuses_records_that_cannot_be_told_apart(tmp_path: Path, records: list[bytes]) -> None:
    with pytest.raises(UsageError, match="separator"):
        pack(records, tmp_path / "a.zrec")


def test_noise_gets_no_dictionary(tmp_path: Path) -> None:
    rng = random.Random(4)
    pack([b"%05d " % n + rng.randbytes(400).replace(b"\n", b"") for n in range(500)], tmp_path / "a.zrec")
    with ZrecReader(tmp_path / "a.zrec") as reader:
        assert reader.dictionary == b""


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(NotReady, match="choose another place"):
        pack(b"a: 1\n\n", tmp_path / "a.zrec")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="choose another place"):
        pack(b"a: 1\n\n", tmp_path / "none" / "a.zrec")


def test_rows_and_info_describe_the_file(tmp_path: Path, make_text: MakeText) -> None:
    packed = pack(make_text(300), tmp_path / "a.zrec", group="2-4")
    data = packed.path.read_bytes()
    with ZrecReader(packed.path) as reader:
        rows = list(reader.list())
        info = reader.info()
    assert sum(len(row.records) for row in rows) == info.records == 300
    assert len(rows) == info.chunks
    assert info.size == len(data)
    for row in rows:
        assert f"{chunk_hash(data[row.offset : row.offset + row.length]):08x}" == row.hash
        assert 1 <= len(row.records) <= 4


def test_damage_is_noticed_named_and_the_rest_readable(tmp_path: Path, make_text: MakeText) -> None:
    path = tmp_path / "a.zrec"
    text = make_text(120)
    pack(text, path)
    data = bytearray(path.read_bytes())
    with ZrecReader(path) as reader:
        row = list(reader.list())[40]
    data[row.offset + 3] ^= 4
    path.write_bytes(data)
    verdict = verify(path)
    assert verdict.readable == 119
    assert verdict.faults[0].startswith("Chunk 40")
    assert len(verdict.faults) == 4
    with pytest.raises(Damaged, match="Chunk 40"):
        verdict.raise_if_damaged()
    with ZrecReader(path) as reader:
        assert reader.text(39) == text.split(b"\n\n")[39]
        with pytest.raises(Damaged, match="Chunk 40"):
            reader.text(40)


def test_every_flipped_byte_is_noticed(tmp_path: Path, formats: ModuleType) -> None:
    data = (formats.FOLDER / "golden-history.zrec").read_bytes()
    path = tmp_path / "a.zrec"
    rng = random.Random(8)
    for at in rng.sample(range(len(data)), 150):
        path.write_bytes(data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :])
        assert not verify(path).sound


def test_release_names_digests_and_is_signed(tmp_path: Path, make_text: MakeText) -> None:
    path = tmp_path / "a.zrec"
    moment = datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)
    pack(make_text(50), path)
    made = write_release(path, time=moment, key=b"secret")
    fields = json.loads((tmp_path / "a.zrec.release").read_bytes())
    assert fields["sha256"] == file_sha256(path)
    assert fields["time"] == "2026-05-06T07:08:09Z"
    read = published_file.parse_release((tmp_path / "a.zrec.release").read_bytes())
    assert read == made
    read.check_signature(b"secret")
    with pytest.raises(Refused):
        read.check_signature(b"another")
    with pytest.raises(Refused):
        published_file.describe_release(path, time=moment).check_signature(b"secret")


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b"null", b"\xff", b'{"format": "zrec-release"}', b"[" * 50_000, b" " * 70_000]
)
def test_refuses_a_release_that_makes_no_sense(data: bytes) -> None:
    with pytest.raises(Damaged):
        published_file.parse_release(data)


def test_refuses_a_release_of_a_later_version_and_impossible_values(tmp_path: Path) -> None:
    pack(b"a: 1\n\n", tmp_path / "a.zrec")
    fields = json.loads((tmp_path / "a.zrec.release").read_bytes())
    with pytest.raises(NewerFormat):
        published_file.parse_release(json.dumps(fields | {"version": 2}).encode())
    for wrong in ({"size": -1}, {"sha256": "00"}, {"sha256": 5}, {"history": [["00" * 16, -4]]}, {"history": [1]}):
        with pytest.raises(Damaged):
            published_file.parse_release(json.dumps(fields | wrong).encode())
    published_file.parse_release(json.dumps(fields | {"later": "fact"}).encode())


def test_verify_sees_a_release_of_another_state(tmp_path: Path) -> None:
    path = tmp_path / "a.zrec"
    pack(b"a: 1\n\n", path)
    stale = (tmp_path / "a.zrec.release").read_bytes()
    pack(b"a: 1\n\nb: 2\n\n", path)
    assert verify(path).sound
    (tmp_path / "a.zrec.release").write_bytes(stale)
    assert "another state" in verify(path).faults[0]
    (tmp_path / "a.zrec.release").write_bytes(b"nonsense")
    assert "cannot be read" in verify(path).faults[0]


def test_no_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        ZrecReader(tmp_path / "none.zrec")
    with pytest.raises(NotFound):
        ZrecReader(tmp_path)
    with pytest.raises(NotFound):
        write_release(tmp_path / "none.zrec", time=datetime.now(UTC))


def test_history_leads_through_many_generations(tmp_path: Path, make_text: MakeText, edited: Edited) -> None:
    path = tmp_path / "a.zrec"
    text = make_text(300)
    pack(text, path)
    for step in range(66):
        text = edited(text, step, 1)
        pack(text, path)
    with ZrecReader(path) as reader:
        assert 0 < len(reader.journals) <= 64
        assert reader.header.journals_size <= reader.header.index_size // 2
        assert max(reader.index.ages.tolist()) == 63
    assert whole(path) == text
    assert verify(path).sound
