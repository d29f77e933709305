from __future__ import annotations

import os
import random
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from letopis.errors import Damaged, LetopisError, NotFound, Refused, Unavailable
from letopis.zrec import FileSource, NoRanges, SyncReport, Traffic, ZrecReader, pack, sync
from letopis.zrec.published_file import limit_ranges, merge_ranges, request_cost

MakeText = Callable[..., bytes]
Edited = Callable[[bytes, int, int], bytes]
ROUNDS = 5_000 if os.environ.get("LETOPIS_LONG") else 100
"""The many rounds are those of test_zrec_fuzz."""


class Server(FileSource):
    """A source that misbehaves as told."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reads: list[tuple[int, int]] = []
        self.fail_after: int | None = None
        self.ranges = True
        self.release = True
        self.spoil: Callable[[bytes], bytes] = bytes
        self.spoil_stream: Callable[[bytes], bytes] = bytes
        self.on_read: Callable[[int], None] = lambda count: None

    async def read(self, start: int, end: int) -> bytes:
        if not self.ranges:
            raise NoRanges("No ranges here; download the whole file.")
        if self.fail_after is not None and len(self.reads) >= self.fail_after:
            raise Unavailable("The connection was closed; try again.")
        self.on_read(len(self.reads))
        self.reads.append((start, end))
        return self.spoil(await super().read(start, end))

    async def read_release(self) -> bytes | None:
        return await super().read_release() if self.release else None

    async def stream(self) -> AsyncIterator[bytes]:
        async for data in super().stream():
            yield self.spoil_stream(data)


class World:
    """A published file in an older and a newer state, and a client's folder."""

    def __init__(self, folder: Path, old: bytes, new: bytes, group: str = "1") -> None:
        self.old, self.new = folder / "old.zrec", folder / "new.zrec"
        pack(old, self.old, group=group)
        pack(new, self.new, group=group, dict_from=self.old)
        self.out = folder / "copy" / "out.zrec"
        self.out.parent.mkdir()
        self.fresh()

    def fresh(self) -> None:
        shutil.copy(self.old, self.out)

    def is_new(self) -> bool:
        return self.out.read_bytes() == self.new.read_bytes()

    def is_old(self) -> bool:
        return self.out.read_bytes() == self.old.read_bytes()


@pytest.fixture
def world(tmp_path: Path, make_text: MakeText, edited: Edited) -> World:
    text = make_text(400)
    return World(tmp_path, text, edited(text, 1, 12))


@pytest.mark.parametrize("group", ["1", "2-4"])
async def test_only_the_difference_is_fetched(tmp_path: Path, make_text: MakeText, edited: Edited, group: str) -> None:
    text = make_text(800)
    world = World(tmp_path, text, edited(text, 1, 12), group)
    report = await sync(FileSource(world.new), world.out)
    assert world.is_new()
    assert (report.fallback, report.verified, report.requests) == (False, True, 3)
    assert report.chunks_fetched <= 12 * (1 if group == "1" else 5)
    assert report.bytes_downloaded < world.new.stat().st_size / 8
    assert (world.out.parent / "out.zrec.release").read_bytes() == (tmp_path / "new.zrec.release").read_bytes()
    assert sorted(path.name for path in world.out.parent.iterdir()) == ["out.zrec", "out.zrec.release"]


async def test_a_copy_that_is_up_to_date_costs_one_request(world: World) -> None:
    await sync(FileSource(world.new), world.out)
    report = await sync(FileSource(world.new), world.out)
    assert (report.requests, report.chunks_fetched) == (1, 0)


async def test_without_a_copy_everything_is_fetched(world: World) -> None:
    world.out.unlink()
    report = await sync(FileSource(world.new), world.out)
    assert world.is_new()
    assert (report.chunks_reused, report.fallback) == (0, False)
    assert report.bytes_downloaded < world.new.stat().st_size + 1000


async def test_a_seed_elsewhere_is_used(world: World) -> None:
    world.out.unlink()
    report = await sync(FileSource(world.new), world.out, seed=world.old)
    assert world.is_new()
    assert report.chunks_reused > 300
    with pytest.raises(NotFound):
        await sync(FileSource(world.old), world.out, seed=world.out.with_name("none"))


async def test_several_generations_behind(tmp_path: Path, make_text: MakeText, edited: Edited) -> None:
    text = make_text(500)
    path, out = tmp_path / "a.zrec", tmp_path / "copy.zrec"
    pack(text, path)
    states = [path.read_bytes()]
    for step in range(8):
        text = edited(text, step, 3)
        pack(text, path)
        states.append(path.read_bytes())
    for behind in range(8):
        out.write_bytes(states[behind])
        report = await sync(FileSource(path), out)
        assert out.read_bytes() == states[-1]
        assert report.requests <= 4
        assert report.bytes_downloaded < len(states[-1]) / 4


async def test_a_copy_outside_the_history_is_aligned_by_the_whole_index(
    tmp_path: Path, make_text: MakeText, edited: Edited
) -> None:
    text = make_text(500)
    first = pack(text, tmp_path / "first.zrec")
    pack(edited(text, 1, 5), tmp_path / "mine.zrec", dict_from=first.path)
    pack(edited(text, 2, 5), tmp_path / "yours.zrec", dict_from=first.path)
    report = await sync(FileSource(tmp_path / "yours.zrec"), tmp_path / "mine.zrec")
    assert (tmp_path / "mine.zrec").read_bytes() == (tmp_path / "yours.zrec").read_bytes()
    assert not report.fallback
    assert report.chunks_reused >= 490


async def test_another_dictionary_is_fetched_too(world: World, make_text: MakeText) -> None:
    pack(make_text(400, seed=9), world.new, new_dict=True)
    report = await sync(FileSource(world.new), world.out)
    assert world.is_new()
    assert not report.fallback


async def test_a_damaged_copy_heals(world: World) -> None:
    data = bytearray(world.out.read_bytes())
    for at in range(len(data) - 5000, len(data), 700):
        data[at] ^= 1
    world.out.write_bytes(data)
    report = await sync(FileSource(world.new), world.out)
    assert world.is_new()
    assert not report.fallback
    world.out.write_bytes(b"no zrec file at all")
    assert (await sync(FileSource(world.new), world.out)).chunks_reused == 0
    assert world.is_new()


async def test_a_collision_of_h_is_seen_by_H_and_fetched_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old chunk whose h fits the new index by accident, but not its group's H."""
    with ZrecReader(world.new) as new, ZrecReader(world.old) as old:
        starts = new.index.borders[:-1].tolist()
        number = next(start for start in starts if new.index.ages[start] and new.index.ages[start + 1])
        twin = next(n for n in range(len(old.index)) if old.stored_chunk(n) == new.stored_chunk(number))
        right = new.stored_chunk(number)
        place = old.header.data_at + int(old.index.offsets[twin])
    data = bytearray(world.out.read_bytes())
    data[place : place + len(right)] = wrong = bytes(len(right))
    world.out.write_bytes(data)
    from letopis.zrec import part_file

    real = part_file.chunk_hash  # type: ignore[attr-defined]
    monkeypatch.setattr(part_file, "chunk_hash", lambda stored: real(right if bytes(stored) == wrong else stored))
    report = await sync(FileSource(world.new), world.out)
    assert world.is_new()
    assert not report.fallback


async def test_a_broken_transfer_goes_on_where_it_stopped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from letopis.zrec import transfer

    monkeypatch.setattr(transfer, "limit_ranges", lambda ranges: limit_ranges(ranges, 2000))
    world.out.unlink()
    server = Server(world.new)
    server.fail_after = 10
    with pytest.raises(Unavailable):
        await sync(server, world.out)
    assert not world.out.exists()
    again = Server(world.new)
    report = await sync(again, world.out)
    assert world.is_new()
    assert report.chunks_reused > 10
    assert report.bytes_downloaded < world.new.stat().st_size - 6000


async def test_a_part_of_another_state_does_no_harm(world: World) -> None:
    part = world.out.with_name("out.zrec.part")
    for leftover in (b"", b"junk", world.old.read_bytes(), bytes(world.new.stat().st_size)):
        world.fresh()
        part.write_bytes(leftover)
        await sync(FileSource(world.new), world.out)
        assert world.is_new()


async def test_a_server_without_ranges_sends_the_whole_file(world: World) -> None:
    server = Server(world.new)
    server.ranges = False
    report = await sync(server, world.out)
    assert world.is_new()
    assert (report.fallback, report.verified, report.chunks_reused) == (True, True, 0)


@pytest.mark.parametrize("ranges", [True, False])
async def test_without_a_release_the_header_judges(world: World, ranges: bool) -> None:
    server = Server(world.new)
    server.release = False
    server.ranges = ranges
    report = await sync(server, world.out)
    assert world.is_new()
    assert report.fallback is not ranges


async def test_a_mixed_pair_is_refused_at_once(world: World) -> None:
    (world.new.parent / "new.zrec.release").write_bytes((world.old.parent / "old.zrec.release").read_bytes())
    world.out.unlink()
    with pytest.raises(Damaged, match="different times"):
        await sync(FileSource(world.new), world.out)
    assert not world.out.exists()


async def test_a_file_that_changes_midway_is_followed(world: World, make_text: MakeText, edited: Edited) -> None:
    server = Server(world.new)

    def republish(count: int) -> None:
        if count == 1:
            pack(edited(make_text(400), 77, 40), world.new)

    server.on_read = republish
    await sync(server, world.out)
    assert world.is_new()


async def test_signature_is_asked_for_with_a_key(world: World, make_text: MakeText) -> None:
    with pytest.raises(Refused):
        await sync(FileSource(world.new), world.out, key=b"secret")
    pack(make_text(300), world.new, key=b"secret")
    await sync(FileSource(world.new), world.out, key=b"secret")
    assert world.is_new()
    (world.new.parent / "new.zrec.release").unlink()
    with pytest.raises(Damaged, match="no release"):
        await sync(FileSource(world.new), world.out, key=b"secret")


async def test_progress_reaches_its_end(world: World) -> None:
    seen: list[tuple[int, int]] = []
    await sync(FileSource(world.new), world.out, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 0


async def test_a_wrong_whole_file_leaves_the_copy_alone(world: World) -> None:
    server = Server(world.new)
    server.ranges = False
    server.spoil_stream = lambda data: data[:-1] + b"?"
    with pytest.raises(Damaged, match="promises"):
        await sync(server, world.out)
    assert world.is_old()
    server.spoil_stream = lambda data: data[:-1]
    with pytest.raises(Unavailable, match="ended after"):
        await sync(server, world.out)
    server.spoil_stream = lambda data: data + b"more"
    with pytest.raises(Damaged):
        await sync(server, world.out)
    assert world.is_old()


async def test_a_file_that_is_gone_is_unavailable(world: World) -> None:
    world.new.unlink()
    with pytest.raises(Unavailable):
        await sync(FileSource(world.new), world.out)
    (world.new.parent / "new.zrec.release").unlink()
    with pytest.raises(Unavailable):
        await sync(FileSource(world.new), world.out)
    assert world.is_old()


def _liar(rng: random.Random) -> Callable[[bytes], bytes]:
    def lie(data: bytes) -> bytes:
        if rng.random() < 0.5 or not data:
            return data
        kind = rng.randrange(5)
        at = rng.randrange(len(data))
        if kind == 0:
            return data[:at]
        if kind == 1:
            return data + rng.randbytes(rng.randrange(1, 9))
        if kind == 2:
            return rng.randbytes(len(data))
        many = bytearray(data)
        for _ in range(kind):
            many[rng.randrange(len(many))] ^= 1 << rng.randrange(8)
        return bytes(many)

    return lie


async def test_whatever_a_server_says_the_copy_is_right_or_untouched(world: World) -> None:
    ended: set[str] = set()
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        world.fresh()
        server = Server(world.new)
        server.spoil = _liar(rng)
        server.spoil_stream = _liar(rng) if rng.random() < 0.5 else bytes
        server.release = rng.random() < 0.7
        try:
            report: SyncReport = await sync(server, world.out)
            ended.add("fallback" if report.fallback else "synced")
            assert world.is_new()
        except LetopisError as wrong:
            ended.add(type(wrong).__name__)
            assert world.is_old() or world.is_new()
    assert {"synced", "fallback", "Damaged"} <= ended


def test_ranges_merge_when_the_gap_is_cheaper_than_a_request() -> None:
    assert merge_ranges([(50, 60), (0, 10), (20, 30), (30, 30)], 15) == [(0, 30), (50, 60)]
    assert merge_ranges([(0, 10), (10, 20)], 0) == [(0, 20)]
    assert merge_ranges([], 100) == []
    assert limit_ranges([(0, 10)], 4) == [(0, 4), (4, 8), (8, 10)]
    assert request_cost(Traffic(1000, 200, 3), 300) == 300
    assert request_cost(Traffic(), 0) > 0
