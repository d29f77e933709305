"""Pages of the web interface over a large catalogue: CPU a page, every one of them.

One process serves; what counts is the CPU time it used (user and system) for
the first answer with all that is counted in the background because of it, and
for a later one: right after, or when what is remembered for seconds is old
again, whichever takes more. The catalogue has a million URLs and five
million checks unless told otherwise. A further part asks for the views of one
site of 100,000 pages that are all in the index of links.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path

# As a script it starts in its own folder.
ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "site")]

from remembered_world import end_of, remember, saved_search, small_world  # noqa: E402
from served_archive import WebClient, running  # noqa: E402
from signed_in import add_people, session_cookie  # noqa: E402

from bench.serving.large_site import HOST, fill_site  # noqa: E402
from bench.serving.many_pages import Scale, fill  # noqa: E402
from letopis.archive import Archive  # noqa: E402
from letopis.model import stamp14  # noqa: E402
from letopis_demo import World  # noqa: E402

GOAL = 100.0
MOST_KB = 150.0
"""Of a page with its styles and scripts."""
VIEWS = ("map", "picture", "links", "pages", "changes", "broken", "ranks", "report", "audit")
_TIMES = 5
_ANSWERS = (200, 303, 404)
"""A known host leads on to its site; an address that nobody captured has a page too."""
_AGAIN = 2
_BIG = "http://big.example/0.html"


@dataclass(frozen=True, slots=True)
class Row:
    """CPU milliseconds of a page: the first time with all that is counted behind it, and from then on."""

    name: str
    address: str
    first: float
    page: float
    bytes: int

    def is_good(self) -> bool:
        """Whether it keeps to its budgets."""
        return self.page <= GOAL and self.bytes <= 1000 * MOST_KB


def addresses(world: World) -> dict[str, str]:
    """Every page by name; those of one URL and one host are the largest there are."""
    home = world.url(0, 0)
    return {
        "overview": "/",
        "overview, further back": "/?before=-500000",
        "watches": "/watches",
        "watches, page 90": "/watches?page=90",
        "watches of a tag": "/watches?tag=tag3",
        "URL with 5,000 checks": f"/url/{_BIG}",
        "calendar of 5,000 checks": f"/web/*/{_BIG}",
        "replay": f"/web/{stamp14(world.start)}/{home}",
        "not captured": "/web/20260101000000/http://nowhere.example/page",
        "compare": f"/compare/{home}",
        **{f"site: {view}": f"/site/{world.hosts[0]}?view={view}" for view in VIEWS},
        "site of 100,000: pages": "/site/big.example?view=pages",
        "site of 100,000: pages, further": "/site/big.example?view=pages&page=example,big)/500",
        "sites": "/sites",
        "sites, by name": "/sites?filter=host9",
        "search": "/search?q=garden",
        "saved searches": "/saved",
        "saved search": "/saved/1",
        "form to save a table": f"/saved/new?question=broken&with=site%3D{world.hosts[0]}",
        "alerts": "/alerts",
        "watch": "/watches/1",
        "pick an element": "/watches/1/pick",
        "save": f"/save?url={_BIG}",
        "accounts": "/accounts",
        "reference": "/docs",
        "reference of an operation": "/docs/search",
        "crawl": "/crawl",
        "jobs": "/jobs",
        "duplicates": "/duplicates",
        "duplicates of a site": f"/duplicates?site={world.hosts[0]}",
        "storage": "/storage",
        "settings": "/settings",
        "login": "/login",
        "find": "/find?q=big.example",
    }


def large_addresses(now: datetime) -> dict[str, str]:
    """Every view of the large site: now, and seen from another day; lists also far behind their start."""
    site, then = f"/site/{HOST}?view=", (now - timedelta(days=20)).date().isoformat()
    deep = {"changes": "&page=90", "broken": "&page=30", "report": "&kind=duplicate-title&page=9", "ranks": "&page=9"}
    return {
        **{view: f"{site}{view}" for view in VIEWS},
        "changes of a kind": f"{site}changes&kind=renamed&page=9",
        **{f"{view}, further": f"{site}{view}{more}" for view, more in deep.items()},
        **{f"{view}, earlier": f"{site}{view}&at={then}" for view in VIEWS if view != "pages"},
        "changes, chosen": f"{site}changes&since={then}",
    }


class Owner:
    """Somebody who may see every page, and what they are told while they wait; `rest` as in `run`."""

    def __init__(self, web: WebClient, tell: Callable[[str], None], rest: float) -> None:
        self.netloc, self.tell, self.rest = web.netloc, tell, rest
        self.headers = {"Cookie": session_cookie(web, "olga"), "Accept": "text/html", "Accept-Encoding": "gzip"}


def measured(owner: Owner, path: str) -> tuple[float, bytes]:
    """CPU milliseconds of this process while it answers, counting in the background aside; and the answer as sent."""
    connection = HTTPConnection(owner.netloc, timeout=120)
    began = time.process_time() - _counting()
    connection.request("GET", path, headers=owner.headers)
    answer = connection.getresponse()
    body = answer.read()
    spent = (time.process_time() - _counting() - began) * 1000
    connection.close()
    assert answer.status in _ANSWERS, (path, answer.status, body[:300])
    return spent, body


def _counting() -> float:
    """CPU seconds that the threads which count in the background have used so far."""
    idents = [one.ident for one in threading.enumerate() if one.name.startswith("letopis-counting") and one.ident]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in idents)


def run(folder: Path, scale: Scale, tell: Callable[[str], None], days: int = 21, rest: float = 0.0) -> list[Row]:
    """Fills an archive, serves it, and asks for every page several times; `rest` is the pause before the last ones."""
    world = small_world()
    end = end_of(world) + timedelta(hours=1)
    with Archive(folder / "archive", clock=lambda: end) as archive:
        add_people(archive)
        saved_search(archive, "olga", world.start)
        remember(archive, world, days=days)
        with running(archive) as web:
            owner = Owner(web, tell, rest)
            # The indexes of links and words take in the sites before the rest is there.
            measured(owner, f"/site/{world.hosts[0]}")
            measured(owner, "/search?q=garden")
            tell(f"filling {scale.urls} URLs, {scale.checks} checks")
            fill(archive, scale)
            tell(f"the catalogue has {archive.catalog.bytes() / 1e6:.0f} MB")
            return [_row(owner, name, address) for name, address in addresses(world).items()]


def run_large(
    folder: Path, pages: int, tell: Callable[[str], None], rest: float = 0.0, only: tuple[str, ...] = ()
) -> list[Row]:
    """Records one large site, serves it, and asks for its views (`only` some); then once more, after a restart."""
    end = datetime(2026, 3, 1, 12, tzinfo=UTC)
    named = f"site of {pages:,}, indexed"
    with Archive(folder / "large", clock=lambda: end) as archive:
        add_people(archive)
        fill_site(archive, pages, tell)
        with running(archive) as web:
            owner = Owner(web, tell, rest)
            wanted = [(name, path) for name, path in large_addresses(end).items() if not only or name in only]
            rows = [_row(owner, f"{named}: {name}", path) for name, path in wanted]
    with Archive(folder / "large", clock=lambda: end) as archive, running(archive) as web:
        return [*rows, _row(Owner(web, tell, rest), f"{named}: map after a restart", f"/site/{HOST}")]


def _row(owner: Owner, name: str, address: str) -> Row:
    began = time.process_time()
    measured(owner, address)
    _settle()
    first = (time.process_time() - began) * 1000
    spent, body = min(measured(owner, address) for _ in range(_TIMES))
    assert b"data-again" not in body, f"{address} is still being worked out"
    later = min(_rested(owner, address) for _ in range(_AGAIN)) if owner.rest else spent
    owner.tell(f"{max(spent, later):7.1f} ms  {address}")
    return Row(name, address, round(first, 1), round(max(spent, later), 1), len(body) + _parts_bytes(owner, body))


def _parts_bytes(owner: Owner, body: bytes) -> int:
    """What the page needs beside itself to look like it does, as it is sent."""
    parts = set(re.findall(rb'(?:src|href)="(/static/[^"]+\.(?:css|js|svg|webmanifest))"', body))
    return sum(len(measured(owner, part.decode())[1]) for part in parts)


def _rested(owner: Owner, address: str) -> float:
    time.sleep(owner.rest)
    return measured(owner, address)[0]


def _settle() -> None:
    """Waits until nothing is counted in the background any more; a busy machine may let it starve for a while."""
    quiet = 0
    while quiet < 6:
        before = time.process_time()
        time.sleep(0.25)
        quiet = quiet + 1 if time.process_time() - before < 0.005 else 0


def table(rows: list[Row]) -> str:
    """For people."""
    goals = f"goal {GOAL:.0f} ms and {MOST_KB:.0f} kB a page"
    lines = [f"{'page':46} {'page ms':>9} {'first ms':>9} {'kB':>7}   {goals}"]
    for row in rows:
        mark = "" if row.is_good() else "  over"
        lines.append(f"{row.name:46} {row.page:9.1f} {row.first:9.1f} {row.bytes / 1000:7.1f}{mark}")
    return "\n".join(lines)


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def main(argv: list[str]) -> int:
    """0 when every page stays below the goal."""
    parser = argparse.ArgumentParser(prog="bench/pages.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--corpus", type=Path, help="not needed: the catalogue is generated")
    parser.add_argument("--urls", type=int, default=1_000_000, help="0 leaves the large catalogue out")
    parser.add_argument("--rest", type=float, default=6.0, help="seconds after which what is remembered is old")
    parser.add_argument("--site", type=int, default=100_000, help="pages of the large site; 0 leaves it out")
    given = parser.parse_args(argv)
    scale = Scale(urls=given.urls, hosts=max(2, given.urls // 200), watches=min(5000, given.urls // 10))
    with tempfile.TemporaryDirectory() as folder:
        rows = run(Path(folder), scale, _tell, rest=given.rest) if given.urls else []
        rows += run_large(Path(folder), given.site, _tell, rest=given.rest) if given.site else []
    print(json.dumps([asdict(row) for row in rows]) if given.json else table(rows))
    return 0 if all(row.is_good() for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
