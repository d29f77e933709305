"""An origin, its published folder, the server over it, and clones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from static_site import StaticSite

from letopis.archive import Archive
from letopis.config import FetchSettings, Settings
from letopis.exchange.replica import CloneReport, CloneSelection, PublishReport, PullOptions, clone, publish, pull
from letopis.model import Put

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@dataclass
class Replica:
    """One origin and one clone of it."""

    folder: Path
    archive: Archive
    site: StaticSite
    settings: Settings = field(
        default_factory=lambda: Settings(fetch=FetchSettings(retries=0, connect=2.0, first_byte=5.0))
    )

    @property
    def published(self) -> Path:
        return self.folder / "published"

    @property
    def copy(self) -> Path:
        return self.folder / "copy"

    def publish(self, *, key: bytes | None = None, grace: float = 3600.0) -> PublishReport:
        return publish(self.archive, self.published, key=key, grace=grace)

    def clone(
        self, selection: CloneSelection | None = None, path: Path | None = None, key: bytes | None = None
    ) -> CloneReport:
        return clone(self.site.address, path or self.copy, selection or CloneSelection(), self.settings, key=key)

    def pull(
        self, *, allow_older: bool = False, fill: bool = False, repack: bool = False, key: bytes | None = None
    ) -> CloneReport:
        return pull(self.copy, PullOptions(allow_older, fill, repack, key), self.settings)

    def add(self, count: int, start: int = 0) -> None:
        """New versions of new and known pages."""
        numbers = range(start, start + count)
        for _ in self.archive.put_many(Put(f"http://new.example/{number % 40}", body(number)) for number in numbers):
            pass

    def assert_equal(self, path: Path | None = None) -> None:
        assert_equal(self.archive, path or self.copy)


def body(number: int) -> bytes:
    rows = [f"<p>line {line} of {number * 7919 % 10007 if line % 5 == 0 else line}</p>" for line in range(60)]
    return "\n".join(rows).encode()


def assert_equal(origin: Archive, path: Path) -> None:
    """All histories, versions, bodies and headers are the same, and every byte of the clone is sound."""
    with Archive(path) as copy:
        assert list(copy.verify()) == []
        urls = sorted(row.url for row in origin.catalog.resources.all())
        assert sorted(row.url for row in copy.catalog.resources.all()) == urls
        for url in urls:
            assert copy.history(url) == origin.history(url)
            for version in origin.versions(url):
                mine, theirs = copy.get(url, version=version.number), origin.get(url, version=version.number)
                assert (mine.body, mine.headers, mine.time) == (theirs.body, theirs.headers, theirs.time)
            for check in origin.history(url):
                moment = check.checked_at
                assert copy.answers.error_body(url, moment) == origin.answers.error_body(url, moment)
        told = copy.catalog.totals()
        assert told._replace(hosts=0, contents=0) == origin.catalog.totals()._replace(hosts=0, contents=0)


def ticking() -> Callable[[], datetime]:
    """A clock that goes on by a minute at each look."""
    moment = [NOW]

    def tick() -> datetime:
        moment[0] += timedelta(minutes=1)
        return moment[0]

    return tick
