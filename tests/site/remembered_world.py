"""An archive that remembers weeks of the simulated web: looks at every page, dated, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from letopis import extract
from letopis.archive import READ, WRITE, Archive
from letopis.archive.jobs import COMMAND_LINE, JobQueue
from letopis.catalog.queues import AGAIN
from letopis.change.verdict import compare
from letopis.crawl import CrawlOptions, enqueue_seeds
from letopis.jobs.execution import JobLanguage, Worker
from letopis.jobs.language.interpreter import run_query
from letopis.model import Observation, Outcome, Page, Response, to_millis
from letopis.monitor.watch import WatchSpec
from letopis.monitor.watch_list import WatchList
from letopis.operations import Context
from letopis.operations.job_files import parse_job_file
from letopis.operations.saved_looks import CheckSavedCommand, saved_check
from letopis.operations.saved_searches import SaveSearch, saved_add
from letopis_demo import World


def small_world() -> World:
    return World(seed=4, hosts=3, pages_per_host=24, span=timedelta(days=21))


def end_of(world: World) -> datetime:
    return world.start + timedelta(days=21)


def remember(archive: Archive, world: World, days: int = 21, every: timedelta = timedelta(days=1)) -> None:
    """Looks at all pages of the world at each step, as a patient crawl would have done."""
    known: dict[str, tuple[bytes, Page]] = {}
    moment = world.start
    while moment <= world.start + timedelta(days=days):
        archive.record(list(_looks(world, moment, known)))
        moment += every
    _plan(archive, world)


def _looks(world: World, moment: datetime, known: dict[str, tuple[bytes, Page]]) -> Iterator[Observation]:
    for host in world.hosts:
        for count, url in enumerate(world.urls(host)):
            yield _look(world, url, moment + timedelta(seconds=count), known)


def _look(world: World, url: str, moment: datetime, known: dict[str, tuple[bytes, Page]]) -> Observation:
    parts = urlsplit(url)
    answer = world.answer(parts.netloc, parts.path + (f"?{parts.query}" if parts.query else ""), (), moment)
    response = Response(url, url, answer.status, tuple(answer.headers), answer.body, moment)
    if answer.status != 200:
        outcome = Outcome.UNAVAILABLE if answer.status >= 400 else Outcome.UNCHANGED
        return Observation(response, outcome, dated=True)
    page = extract.read_page(answer.body, url, response.headers)
    before = known.get(url)
    known[url] = (answer.body, page)
    if before is None:
        return Observation(response, Outcome.NEW, page, dated=True)
    same = before[0] == answer.body
    change = compare(page, [before[1]], same_bytes=same)
    return Observation(response, Outcome.UNCHANGED if same else Outcome.CHANGED, page, change, dated=True)


def _plan(archive: Archive, world: World) -> None:
    """What a crawl and people would have left behind: a queue, figures of hosts, watches."""
    enqueue_seeds(archive, CrawlOptions(("http://waiting.example/", "http://new.example/")))
    known = list(archive.catalog.resources.all())
    with archive.catalog.transaction() as cursor:
        for number, name in enumerate(world.hosts):
            host = archive.catalog.resources.ensure_host(cursor, name)
            archive.catalog.queues.set_hosts(cursor, [(f"127.0.0.{number + 2}", 0, 0, 1.0, 500 - number, 0, host)])
        due = to_millis(end_of(world))
        for row in known:
            step = timedelta(hours=row.id % 48 - 2) // timedelta(milliseconds=1)
            archive.catalog.queues.finish(cursor, [(AGAIN, due + step, b"", row.id)])
    pages = [world.url(0, 0), world.url(1, 0), world.url(1, 3)]
    WatchList(archive).add(pages, WatchSpec(every=3600.0), "demo")


def answered_job(archive: Archive, site: str, step: str = "map") -> int:
    """The number of a job that asked for the map of a site, or something else of it, and got it."""
    question = f'<query package="mapgenerator" name="{step} of {site}"><{step} site="{site}"/></query>'
    job = JobQueue(archive).submit(parse_job_file(question.encode()), COMMAND_LINE)
    Worker(archive, JobLanguage(parse_job_file, run_query), "here").run(job.package)
    return job.id


def saved_search(archive: Archive, user: str, moment: datetime) -> int:
    """The number of a search that somebody saved and that has found pages of a moment since."""
    asking = Context(archive, user=user, rights=READ | WRITE)
    number = saved_add(asking, SaveSearch(name="Gardens", query="garden")).value.id
    for place in ("garden-chairs", "garden-tools"):
        page = f"<title>{place.replace('-', ' ').capitalize()}</title><p>New for every garden.</p>"
        archive.put(f"http://shop2.example/offers/{place}.html", page.encode(), moment)
    saved_check(asking, CheckSavedCommand(id=number))
    return number
