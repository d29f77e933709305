"""`letopis clone` and `pull`: an archive made of published files, and brought up to date.

The order of writes is in docs/internals/replica-format.md; every step can be
done twice, so a run that was killed or cut off is simply begun again.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from letopis.archive import Archive, utc_now
from letopis.config import DatabaseSettings, Settings
from letopis.errors import NotFound, Refused, UsageError
from letopis.exchange.replica import release as releases
from letopis.exchange.replica import state as states
from letopis.exchange.replica.durable import alone, told
from letopis.exchange.replica.following import Follower, Wish
from letopis.exchange.replica.layout import CloneFolder
from letopis.exchange.replica.origin import Origin, canonical, connected
from letopis.exchange.replica.selection import Selection
from letopis.exchange.replica.state import CloneState
from letopis.zrec import Traffic

Progress = Callable[[int], None]
"""Hears how many bytes have come in all."""


@dataclass(frozen=True, slots=True)
class CloneReport:
    """What a clone or pull did. Bytes are those on the wire, headers included."""

    serial: int
    up_to_date: bool
    bytes_downloaded: int
    bytes_sent: int
    requests: int
    packs_fetched: int
    packs_reused: int
    contents_fetched: int
    records_fetched: int
    documents: int
    versions: int
    checks: int
    absent: int
    verified: bool


@dataclass(frozen=True, slots=True)
class PullOptions:
    """How a pull differs from the usual one."""

    allow_older: bool = False
    fill: bool = False
    repack: bool = False
    key: bytes | None = None


def clone(
    address: str,
    path: Path,
    selection: Selection,
    settings: Settings,
    *,
    key: bytes | None = None,
    progress: Progress = lambda done: None,
    clock: Callable[[], datetime] = utc_now,
) -> CloneReport:
    """Makes a folder a clone of a published archive; goes on with one that was interrupted."""
    folder = CloneFolder(path)
    state = CloneState(canonical(address), selection, key is not None)
    with told(path):
        spent = Traffic() if folder.marker.exists() else _published(state.origin, settings, clock)
        with alone(folder.lock, f"works on {path}"):
            states.begin(folder, state)
            report = _run(folder, state, PullOptions(key=key), settings, progress, clock)
    return replace(
        report,
        bytes_downloaded=report.bytes_downloaded + spent.received,
        bytes_sent=report.bytes_sent + spent.sent,
        requests=report.requests + spent.requests,
    )


def _published(origin: str, settings: Settings, clock: Callable[[], datetime]) -> Traffic:
    """Nothing is made on this side before something is seen on the other; what the look cost."""

    async def look() -> Traffic:
        async with connected(origin, settings.fetch, clock) as source:
            releases.parse(await source.release())
            return source.traffic

    return asyncio.run(look())


def pull(
    path: Path,
    options: PullOptions,
    settings: Settings,
    *,
    progress: Progress = lambda done: None,
    clock: Callable[[], datetime] = utc_now,
) -> CloneReport:
    """Brings a clone up to date, transferring only differences."""
    folder = states.clone_folder(path)
    with told(path), alone(folder.lock, f"works on {path}"):
        state = states.read_state(folder)
        if state.signed and options.key is None:
            raise UsageError("this clone was made with a key; give it again with --key FILE")
        if options.fill and state.selection != Selection(site=state.selection.site):
            state = replace(state, selection=Selection(site=state.selection.site))
            states.write_state(folder, state)
        return _run(folder, state, options, settings, progress, clock)


def detach(path: Path, settings: Settings) -> None:
    """Makes a clone an archive of its own, for good; `Refused` while contents are missing."""
    folder = states.clone_folder(path)
    with told(path), alone(folder.lock, f"works on {path}"):
        if states.applied(folder) is None:
            raise Refused(f"{path} is not complete; finish it first with 'letopis pull {path}'")
        with Archive(path, settings=local_settings(settings)) as archive:
            missing = archive.catalog.contents.absent()
        if missing:
            raise Refused(f"{missing} contents are not fetched yet; fetch them with 'letopis pull {path} --fill'")
        folder.marker.unlink()
    shutil.rmtree(folder.folder)


def local_settings(settings: Settings) -> Settings:
    """A clone lives in its folder, wherever other archives of these settings live."""
    return replace(settings, database=DatabaseSettings(), store=replace(settings.store, url=""))


def _run(
    folder: CloneFolder,
    state: CloneState,
    options: PullOptions,
    settings: Settings,
    progress: Progress,
    clock: Callable[[], datetime],
) -> CloneReport:
    async def whole() -> CloneReport:
        async with connected(state.origin, settings.fetch, clock) as origin:
            return await _followed(origin, folder, state, options, archive, progress)

    with Archive(folder.archive, settings=local_settings(settings), following=True) as archive:
        return asyncio.run(whole())


async def _followed(
    origin: Origin, folder: CloneFolder, state: CloneState, options: PullOptions, archive: Archive, progress: Progress
) -> CloneReport:
    known = states.applied(folder)
    wish = Wish(state.selection, options.fill, options.repack, progress)
    try:
        follower = await _judged(origin, folder, options, archive, wish)
    except NotFound:
        # The publisher has moved on between our two requests: its release now names another index.
        follower = await _judged(origin, folder, options, archive, wish)
    counts, traffic = archive.catalog.totals(), origin.traffic
    return CloneReport(
        serial=follower.release.serial,
        up_to_date=follower.release == known and not follower.packs_fetched and not follower.contents_fetched,
        bytes_downloaded=traffic.received,
        bytes_sent=traffic.sent,
        requests=traffic.requests,
        packs_fetched=follower.packs_fetched,
        packs_reused=follower.packs_reused,
        contents_fetched=follower.contents_fetched,
        records_fetched=follower.records_fetched,
        documents=counts.documents,
        versions=counts.versions,
        checks=counts.checks,
        absent=archive.catalog.contents.absent(),
        verified=True,
    )


async def _judged(origin: Origin, folder: CloneFolder, options: PullOptions, archive: Archive, wish: Wish) -> Follower:
    found = releases.parse(await origin.release())
    if options.key is not None:
        found.check_signature(options.key)
    states.judge(found, states.applied(folder), allow_older=options.allow_older)
    follower = Follower(origin, folder, archive, found, wish)
    known = found == states.applied(folder) and not folder.unsettled.exists()
    if not known or wish.fill or wish.repack:
        if known:
            shutil.copyfile(folder.index, folder.incoming)
        await follower.run()
    return follower
