"""`/`: what the archive holds and what changed lately. `/find`, `/save`: to a page. `/storage`, `/settings` ..."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from types import MappingProxyType, SimpleNamespace
from typing import Any, Literal, get_args, get_origin
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from letopis.api.door import context_of
from letopis.api.requests import ArchiveDep
from letopis.archive import Archive
from letopis.archive.activity import DAY, activity_of, busiest_hosts, is_checked, recent_versions
from letopis.archive.audit import DAYS_KEPT
from letopis.archive.crawl_status import crawl_figures
from letopis.config.loader import format_size
from letopis.config.settings import find_setting
from letopis.errors import BadUrl, LetopisError, shell_words
from letopis.model import Outcome, from_millis, to_millis
from letopis.model.rights import OWN
from letopis.operations import Context, bind
from letopis.operations.alerts import AlertsQuery
from letopis.operations.checks import CheckCommand, check
from letopis.operations.job_rows import Job
from letopis.operations.jobs import JobsQuery, list_jobs
from letopis.operations.parameters import NoParameters
from letopis.operations.settings import ResetSettingCommand, SetSettingCommand, SettingRow, reset_setting, set_setting
from letopis.operations.settings import settings as list_settings
from letopis.operations.totals import (
    GrowthRow,
    SitesQuery,
    UsageQuery,
    disk_room,
    storage_figures,
    storage_sites,
    usage,
)
from letopis.operations.upkeep import DoctorFinding, doctor
from letopis.operations.watch_options import watch_tags
from letopis.schedule.policies import format_span
from letopis.tuples import NamedTuple
from letopis.urls import host, parse_user_url
from letopis.web.alerts import count_unread, shown_alerts
from letopis.web.cache import page_cache_of
from letopis.web.charts import Bar, bars, growth_line
from letopis.web.jobs import open_runs
from letopis.web.languages import language_of, translatable, translate, use_language
from letopis.web.login import local_path
from letopis.web.maps import TitleShortener
from letopis.web.pages import FormDep, PageRoute, form_status, iso_day, render_page, url_in_path
from letopis.web.tables import MOST_ROWS, TableColumn, make_table, table_download

router = APIRouter(route_class=PageRoute)

DAYS = 30
"""Days that the overview looks back."""
_LISTED = 20
_ALERTS = 8
_LARGEST = 12
"""Sites that the page about storage lists."""


class StorageGrowth(NamedTuple):
    """How an archive grew: the points of a line, its ends, and all of it in bytes."""

    points: str
    first: str
    last: str
    stored_bytes: int


class CrawlBacklog(NamedTuple):
    """What waits. `fresh` is the share of visited pages that are not overdue, None when none is planned."""

    new: int
    again: int
    due: int
    fresh: float | None


@router.get("/help")
@router.get("/guide")
def help_page(request: Request) -> Response:
    """What people come for, in a few sentences each, and where to read on."""
    return render_page(request, "help.html")


@router.get("/")
def overview(request: Request, archive: ArchiveDep, before: str = "", joined: str = "") -> Response:
    """Totals, freshness, activity, hosts, latest changes; `before` goes further back in the list.

    Whoever has just `joined` is greeted.
    """
    known, context = page_cache_of(request), context_of(request)
    queue = known.get("queue", 2, lambda: _backlog(archive))
    days, ends = known.get("days", 10, lambda: _days(archive))
    changes = recent_versions(archive, _LISTED + 1, _position(before))
    return render_page(
        request, "overview.html", stats=known.soon("stats", 10, archive.stats), queue=queue,
        days=days, ends=ends,
        hosts=known.soon("hosts", 10, lambda: busiest_hosts(archive, 12)), changes=changes[:_LISTED],
        named=_names((one.url, one.title) for one in changes),
        older=changes[_LISTED - 1].id if len(changes) > _LISTED else None, before=before,
        first_start=not changes and not before and queue.new == 0, joined=bool(joined),
        alerts=shown_alerts(request, AlertsQuery(limit=_ALERTS)), unread=count_unread(request),
        runs=open_runs(context), watches=sum(tag.watches for tag in watch_tags(context, NoParameters())),
    )  # fmt: skip


def _names(pages: Iterable[tuple[str, str]]) -> Callable[[str, str], str]:
    """What to call pages of many sites, by address and title: without the name of a site that several of it have."""
    titles: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for url, title in pages:
        titles[host(url)][url] = title
    short = {name: TitleShortener(found.values()) for name, found in titles.items() if len(found) > 1}
    return lambda url, title: short[host(url)].of(title) if host(url) in short else title


SITE_COLUMNS = (
    TableColumn("name", translatable("Site"), "custom"),
    TableColumn("pages", translatable("Addresses"), "number"),
    TableColumn("changes", translatable("Changes"), "number", aside=True),
    TableColumn("versions", translatable("Versions"), "number", hidden=True),
    TableColumn("changed", translatable("Newest version"), "ago", aside=True),
    TableColumn("checked", translatable("Last check"), "ago", aside=True),
    TableColumn("stored_bytes", translatable("Stored"), "size", aside=True),
    TableColumn("open", translatable("Open"), "actions", aside=True),
)


@router.get("/sites")
def all_sites(request: Request, archive: ArchiveDep) -> Response:
    """Every site, those with the most pages first."""
    known, context = page_cache_of(request), context_of(request)
    found = known.soon("sites", 30, lambda: busiest_hosts(archive, MOST_ROWS))
    sizes = known.soon("sizes", 300, lambda: {row.site: row for row in storage_sites(context, SitesQuery(limit=1000))})
    stored = {name: row.stored_bytes for name, row in (sizes or {}).items()}
    lines = [
        SimpleNamespace(**one._asdict(), changes=max(0, one.versions - one.pages), stored_bytes=stored.get(one.name))
        for one in found or ()
    ]
    table = None if found is None else make_table(request, SITE_COLUMNS, lines)
    return table_download(table, "sites") or render_page(request, "sites.html", table=table)


def _position(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None


def _backlog(archive: Archive) -> CrawlBacklog:
    figures = crawl_figures(archive)
    fresh = 1 - figures.due / figures.again if figures.again else None
    return CrawlBacklog(figures.new, figures.again, figures.due, fresh)


def _days(archive: Archive) -> tuple[list[Bar], dict[str, int]]:
    """The last days, each with its bar, which may be empty; and where in the list of versions days end."""
    first = to_millis(archive.clock()) // DAY - DAYS + 1
    found = {row.day: row for row in activity_of(archive).by_day(first * DAY)}
    rows = []
    for number in range(first, first + DAYS):
        row = found.get(number)
        label = iso_day(from_millis(number * DAY))
        rows.append((label, row.changed if row else 0, row.new if row else 0))
    return bars(rows, rooted=True), {iso_day(from_millis(day * DAY)): row.last + 1 for day, row in found.items()}


@router.get("/find")
def find(archive: ArchiveDep, q: str = "") -> Response:
    """A known address leads to its page, a known host to its site, anything else to the search."""
    text = q.strip()
    address = _known_address(archive, text)
    if address is not None:
        return RedirectResponse(f"/url/{url_in_path(address)}", 303)
    if text and " " not in text and activity_of(archive).count_pages(_host(text), 1):
        return RedirectResponse(f"/site/{_host(text)}", 303)
    return RedirectResponse(f"/search?{urlencode({'q': text})}", 303)


@router.post("/save")
def save(request: Request, form: FormDep) -> Response:
    """Looks at an address that is not known yet, and leads to its page, or back to a list with what came of it."""
    context, url, back = context_of(request), form.get("url", ""), form.get("back", "")
    asked = {"url": [url], "as": "", "now": True, **{name: form.get(name) == "1" for name in ("requisites", "browser")}}
    try:
        answer = check(context, bind(CheckCommand, asked, context.moment(), door="http"))
    except BadUrl:
        return RedirectResponse(f"/save?{urlencode({'url': url})}", 303)
    found = next(iter(answer), None)
    if found is None or found.outcome is Outcome.REFUSED:
        for fault in answer.faults:
            raise fault
    if back:
        return RedirectResponse(f"{local_path(back)}{'&' if '?' in back else '?'}checked={quote(url)}#checked", 303)
    return RedirectResponse(f"/url/{url_in_path(parse_user_url(url))}?saved.now=1", 303)


def _known_address(archive: Archive, text: str) -> str | None:
    if not text or " " in text or not ("/" in text or "." in text or ":" in text):
        return None
    for candidate in (text, f"https://{text}"):
        try:
            url = parse_user_url(candidate)
        except BadUrl:
            continue
        if is_checked(archive, url):
            return url
    return None


def _host(text: str) -> str:
    try:
        return host(parse_user_url(text))
    except BadUrl:
        return ""


storage_router = APIRouter(route_class=PageRoute)

_PARTS = {
    translatable("packs"): translatable("Contents of all versions"),
    translatable("catalogue"): translatable("Facts: every check, version, header"),
    translatable("index"): translatable("Links and words; can be deleted, and is rebuilt"),
}

_KIND_NAMES = {
    "html": translatable("HTML pages"),
    "images": translatable("Images"),
    "styles": translatable("Styles"),
    "scripts": translatable("Scripts"),
    "pdf": translatable("PDF documents"),
    "other": translatable("Other"),
}


@storage_router.get("/storage")
def storage(request: Request, archive: ArchiveDep) -> Response:
    """Raw and stored sizes, packs, methods, retention: counted at one moment, while crawls go on."""
    known, context = page_cache_of(request), context_of(request)
    found = known.soon("storage", 30, lambda: storage_figures(archive, _LARGEST))
    return render_page(
        request, "storage.html", stats=found.totals if found else known.soon("stats", 10, archive.stats), found=found,
        purposes=_PARTS, keep=archive.settings.store, fetch=archive.settings.fetch, serve=archive.settings.serve,
        room=disk_room(context), growth=found and _growth(found.growth), kind_names=_KIND_NAMES,
        health=known.soon("health", 60, partial(_health, context)) if context.may(OWN) else None,
        verified=_verified(context) if context.may(OWN) else None,
    )  # fmt: skip


def _verified(context: Context) -> Job | None:
    """The last run that verified the archive to its end."""
    ended = (job for state in ("done", "failed") for job in list_jobs(context, JobsQuery(state=state, limit=1000)))
    return max((job for job in ended if job.name == "verify"), key=lambda job: job.id, default=None)


def _growth(rows: list[GrowthRow]) -> StorageGrowth:
    ends = (rows[0].day, rows[-1].day) if rows else ("", "")
    line = growth_line([(row.day, row.stored_bytes) for row in rows])
    return StorageGrowth(line, *ends, sum(row.stored_bytes for row in rows))


def _health(context: Context) -> list[DoctorFinding]:
    return list(doctor(context, NoParameters()))


settings_router = APIRouter(route_class=PageRoute)
_DONE = {"changed": translatable("Changed. It takes effect when the service is restarted.")}
_LONG_TEXTS = ("monitor.message",)
_SECTION_NAMES = {
    "archive": translatable("Archive"),
    "store": translatable("Contents on disk"),
    "database": translatable("Database"),
    "fetch": translatable("Requests"),
    "capture": translatable("Captures"),
    "monitor": translatable("Watches"),
    "change": translatable("What counts as a change"),
    "crawl": translatable("Crawl"),
    "schedule": translatable("When pages are visited again"),
    "search": translatable("Search"),
    "serve": translatable("This service"),
    "jobs": translatable("Runs"),
    "cluster": translatable("Several machines"),
}
_NOTHING_SENT: Mapping[str, str] = MappingProxyType({})
_SETTINGS_FILE = Markup("<code>letopis.toml</code>")


@settings_router.get("/settings")
def settings(request: Request, q: str = "", only: str = "", done: str = "") -> Response:
    """The settings this service runs with, all or those that fit; secrets are never shown."""
    return _settings_page(request, q, only, done=_DONE.get(done, ""))


def _settings_page(
    request: Request,
    q: str = "",
    only: str = "",
    *,
    done: str = "",
    problem: str = "",
    status: int = 200,
    sent: Mapping[str, str] = _NOTHING_SENT,
) -> Response:
    with use_language(language_of(request)):
        fitting = [row for row in list_settings(context_of(request), NoParameters()) if _setting_fits(row, q)]
    chosen = {
        "": fitting,
        "set": [row for row in fitting if row.source != "default" or row.changed or row.next is not None],
        "editable": [row for row in fitting if row.editable],
    }
    rows = chosen.get(only, fitting)
    written = {row.name: _field_text(row) for row in rows}
    sections = [
        (name, list(group)) for name, group in groupby(map(_readable, rows), lambda row: row.name.partition(".")[0])
    ]
    return render_page(
        request, "settings.html", status, sections=sections, q=q[:200], only=only,
        counts={name: len(found) for name, found in chosen.items()}, file=_SETTINGS_FILE, done=done,
        problem=problem, sent=sent, written=written, long_texts=_LONG_TEXTS, section_names=_SECTION_NAMES,
        plain_words=_PLAIN_WORDS, choices={row.name: _choices(row.name) for row in rows if row.editable},
    )  # fmt: skip


def _setting_fits(row: SettingRow, q: str) -> bool:
    """Whether a setting has all words of a question in its names or in what the page says of it."""
    text = f"{row.name} {row.variable} {row.help} {translate(row.help)}".casefold()
    return all(word in text for word in q.casefold().split())


def _choices(name: str) -> tuple[str, ...]:
    """The values of a setting that has only a few."""
    setting = find_setting(name)
    if setting is None or setting.type is bool:
        return ("true", "false") if setting else ()
    return tuple(map(str, get_args(setting.type))) if get_origin(setting.type) is Literal else ()


@settings_router.post("/settings")
def change_setting(request: Request, form: FormDep) -> Response:
    """A new value of a setting, or its default again."""
    context, name = context_of(request), form.get("name", "")
    try:
        if form.get("action") == "reset":
            reset_setting(context, ResetSettingCommand(name=name))
        else:
            value = {"name": name, "value": form.get("value", "")}
            set_setting(context, bind(SetSettingCommand, value, context.moment()))
    except LetopisError as error:
        sent = {"name": name, "value": form.get("value", "")}
        return _settings_page(request, name, problem=shell_words(error), status=form_status(error), sent=sent)
    return RedirectResponse(f"/settings?q={quote(name)}&done=changed", 303)


_NO_LIMITS = {
    "store.keep_versions": translatable("all"), "store.keep_for": translatable("any"),
    "store.thin_after": translatable("none"), "store.max_bytes": translatable("no limit"),
    "serve.checks_a_day": translatable("no limit"), "serve.watches_a_day": translatable("no limit"),
}  # fmt: skip
"""What 0 means, in the words of the page about storage."""


def _readable(row: SettingRow) -> SettingRow:
    """A setting with its values in words and units that people read."""
    later = None if row.next is None else _readable_value(row.next, row.unit, row.name)
    value, default = (_readable_value(text, row.unit, row.name) for text in (row.value, row.default))
    return row._replace(value=value, default=default, next=later)


def _field_text(row: SettingRow) -> str:
    """What the field of a setting holds: its value, and sizes in the words in which they are shown."""
    text = row.value if row.next is None else row.next
    if row.unit == "seconds" and text.replace(".", "", 1).isdigit():
        return _written_span(float(text))
    return format_size(int(text)) if row.unit == "bytes" and text.isdigit() else text


def _written_span(seconds: float) -> str:
    """A duration as a field takes it: `7d`, `90s`, `0`."""
    fitting = (
        f"{seconds / size:.0f}{unit}" for unit, size in (("d", 86400), ("h", 3600), ("m", 60)) if not seconds % size
    )
    return next(fitting, f"{seconds:g}s") if seconds else "0"


def _readable_value(text: str, unit: str, name: str) -> str:
    if text in ("0", "0.0") and name in _NO_LIMITS:
        return _NO_LIMITS[name]
    if text in _WORDS:
        return _WORDS[text]
    if unit and text.replace(".", "", 1).isdigit() and float(text):
        return format_size(int(text)) if unit == "bytes" else format_span(float(text))
    return "0" if text == "0.0" else text


_USE_COLUMNS = (
    TableColumn("day", translatable("Day")),
    TableColumn("searches", translatable("Searches"), "number"),
    TableColumn("unanswered", translatable("Without results"), "number", aside=True),
    TableColumn("clicks", translatable("Results opened"), "number", aside=True),
    TableColumn("pages", translatable("Page views"), "number"),
    TableColumn("replays", translatable("Replays"), "number", aside=True),
    TableColumn("requests", translatable("Requests to the API"), "number", aside=True),
    TableColumn("jobs", translatable("Runs"), "number", aside=True),
)


@settings_router.get("/statistics")
def statistics(request: Request) -> Response:
    """How often the archive was used by day; the gate lets only owners in here."""
    found = usage(context_of(request), UsageQuery(days=DAYS_KEPT))
    rows = list(found)
    table = make_table(request, _USE_COLUMNS, rows)
    return table_download(table, "statistics") or render_page(
        request, "statistics.html", table=table, counted=found.about["counted"],
        days=_use_by_day({row.day: row for row in rows}, to_millis(context_of(request).moment()) // DAY),
    )  # fmt: skip


def _use_by_day(found: Mapping[str, Any], today: int) -> list[Bar]:
    """Pages shown and searches of the last days, the oldest first."""
    labels = [iso_day(from_millis(day * DAY)) for day in range(today - DAYS + 1, today + 1)]
    rows = [found.get(label) for label in labels]
    return bars(
        [(label, row.pages if row else 0, row.searches if row else 0) for label, row in zip(labels, rows, strict=True)]
    )


_WORDS = {"true": "yes", "false": "no", "": "none"}
_PLAIN_WORDS = {*_WORDS.values(), *_NO_LIMITS.values()}
