"""Every operation through every door on one archive: the same rows, the same sentences, the same meaning.

One script of questions and commands is carried out three times, each time on a copy of the archive of its own: by
calling the operations, by the command line, and over HTTP; questions that a job may ask are asked by a job as well.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from contract_doors import IN_BODY, Raw, Told, by_command, directly, http_status, in_a_job, over_http
from scripted_site import ScriptedSite
from served_archive import PAGE, WebClient, fill, running

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.config import FetchSettings, Settings
from letopis.model import Observation, Outcome, Response, WholePage, to_millis
from letopis.operations import Document, Operation, Rows, Value
from letopis.operations.old_names import with_old_fields
from letopis.operations.operation import all_operations
from letopis.operations.parameters import Door

NOW = datetime(2024, 3, 1, tzinfo=UTC)
HOST = "example.org"
WHOLE = "http://whole.example/"
JOB = b'<query name="Broken"><broken site="example.org"/></query>'
STAMP = re.compile(
    r"20(?!24)\d\d-\d\d-\d\dT[\d:.]+Z|2024-03-01T[\d:.]+Z|\b20(?!24)\d{12}\b|\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT"
)
VOLATILE = {
    "token", "message", "seconds", "folder", "archive", "target", "owner", "inviter", "path", "secret", "uri",
    "stored_bytes", "pack_bytes", "catalog_bytes", "index_bytes", "bytes_downloaded", "bytes_sent",
    "searches", "requests", "last_used",
}  # fmt: skip
"""Fields that differ between two runs of the same command, or tell through which door it came."""

Given = Raw | Callable[[Path], Raw]
SCRIPT: list[tuple[str, Given]] = [
    ("init", {}),
    ("put", {"url": f"http://{HOST}/", "file": b'<title>Home</title><a href="/page">page</a> <a href="/gone">gone</a>',
             "at": "2024-01-02T00:00:00Z", "content_type": "text/html"}),
    ("put", {"url": f"http://{HOST}/copy", "file": b'<title>Home</title><a href="/page">page</a> <a href="/gone">gone',
             "at": "2024-01-02T00:00:00Z", "content_type": "text/html"}),
    ("history", {"url": PAGE}),
    ("history", {"url": PAGE, "from": "2024-01-01T12:15:00Z", "to": "2024-01-01", "limit": 2}),
    ("versions", {"url": PAGE}),
    ("get", {"url": PAGE, "version": 0}),
    ("sets", {"url": WHOLE}),
    ("set_members", {"url": WHOLE, "at": "2024-01-01"}),
    ("screenshot", {"url": WHOLE}),
    ("shown_text", {"url": WHOLE}),
    ("shown_text", {"url": PAGE}),
    ("qa", {"place": PAGE}),
    ("get", {"url": PAGE, "version": 0, "format": "markdown"}),
    ("diff", {"url": PAGE, "from": "2024-01-01T12:00:00Z", "to": "2024-01-01T12:35:00Z"}),
    ("diff", {"url": PAGE, "from": "2024-01-01T12:00:00Z", "to": "2024-01-01T12:35:00Z", "format": "links"}),
    ("extract", {"url": PAGE, "at": "2024-01-01"}),
    ("extract", {"url": PAGE, "at": "2024-01-01", "format": "text"}),
    ("map", {"site": HOST, "at": "2024-02-01", "format": "json"}),
    ("report", {"site": HOST, "at": "2024-02-01"}),
    ("mapdiff", {"site": HOST, "from": "2024-01-01T12:00:30Z", "to": "2024-02-01"}),
    ("links", {"url": HOST, "at": "2024-02-01"}),
    ("links", {"url": PAGE, "at": "2024-02-01"}),
    ("links_in", {"url": PAGE, "at": "2024-02-01"}),
    ("broken", {"site": HOST, "at": "2024-02-01"}),
    ("rank", {"site": HOST, "at": "2024-02-01", "top": 3}),
    ("search", {"q": "version", "at": "2024-02-01"}),
    ("complete", {"q": "vers"}),
    ("search", {"q": "version", "site": [HOST], "limit": 1, "explain": True, "at": "2024-02-01"}),
    ("near", {"word": "version", "at": "2024-02-01"}),
    ("when", {"phrase": "version"}),
    ("categories", {"site": HOST, "at": "2024-02-01"}),
    ("duplicates", {"site": HOST}),
    ("copies", {}),
    ("wordfigure", {"extension": "ion", "basicextension": "e"}),
    ("lock_words", {"words": ["Windows", "data"]}),
    ("list_words", {}),
    ("release_words", {"words": ["data"]}),
    ("chosen", {"url": PAGE}),
    ("changes", {"client": "reader"}),
    ("acknowledge", {"client": "reader", "cursor": "v2"}),
    ("changes", {"client": "reader"}),
    ("stats", {}),
    ("storage", {}),
    ("storage_growth", {}),
    ("storage_sites", {"limit": 3}),
    ("storage_kinds", {}),
    ("settings", {}),
    ("set_setting", {"name": "crawl.delay", "value": "2s"}),
    ("set_setting", {"name": "fetch.private", "value": "always"}),
    ("reset_setting", {"name": "crawl.delay"}),
    ("reset_setting", {"name": "crawl.delay"}),
    ("add_user", {"name": "ann", "role": "user", "password": "a long password"}),
    ("list_users", {}),
    ("set_role", {"name": "ann", "role": "guest"}),
    ("set_group", {"name": "ann", "group": "press"}),
    ("set_password", {"name": "ann", "password": "another password"}),
    ("create_token", {"name": "reader", "user": "ann", "scope": "read"}),
    ("list_tokens", {}),
    ("add_to_project", {"name": "news", "urls": [PAGE]}),
    ("add_to_project", {"name": "news", "site": [HOST], "prefix": [PAGE]}),
    ("list_projects", {}),
    ("show_project", {"name": "news"}),
    ("search", {"q": "version", "project": "news", "at": "2024-02-01"}),
    ("search", {"q": "version", "sort": "date", "collapse": True, "at": "2024-02-01"}),
    ("moved", {"url": f"http://{HOST}/nowhere"}),
    ("remove_project", {"name": "news", "site": [HOST]}),
    ("remove_project", {"name": "news"}),
    ("revoke_token", {"name": "reader"}),
    ("begin_two_factor", {"name": "ann"}),
    ("confirm_two_factor", {"name": "ann", "code": "1"}),
    ("end_two_factor", {"name": "ann"}),
    ("invite_user", {"role": "guest", "group": "press", "for": "1h"}),
    ("list_invitations", {}),
    ("revoke_invitation", {"id": 1}),
    ("revoke_invitation", {"id": 1}),
    ("remove_user", {"name": "ann"}),
    ("list_audit", {"limit": 3}),
    ("watch_add", {"url": [PAGE], "every": "1h", "tag": "press", "when": "changed", "notify": ["http://127.0.0.1:9/"]}),
    ("watch_list", {"tag": "press"}),
    ("watch_show", {"id": 1}),
    ("watch_values", {"id": 1}),
    ("watch_edit", {"id": 1, "every": "2h", "hours": "mon-fri 08:00-18:00", "quiet_hours": "22:00-07:00"}),
    ("watch_clone", {"id": 1}),
    ("watch_snooze", {"url": ["2"], "for": "8h"}),
    ("watch_remove", {"url": ["2"]}),
    ("watch_preview", {"url": PAGE}),
    ("watch_deliveries", {"url": PAGE}),
    ("watch_pause", {"url": [PAGE]}),
    ("watch_resume", {"url": [PAGE]}),
    ("watch_check", {"url": [PAGE]}),
    ("watch_tag", {"url": [PAGE], "tag": "other"}),
    ("watch_tags", {}),
    ("watch_forget_tag", {"tag": "other"}),
    ("watch_alerts", {}),
    ("watch_test", {"url": [PAGE]}),
    ("saved_add", {"name": "Versions", "q": "version", "notify": ["http://127.0.0.1:9/"]}),
    ("saved_add", {"name": "Dead", "question": "broken", "with": [f"site={HOST}"], "filter": "404"}),
    ("saved_add", {"name": "Dead", "question": "stats"}),
    ("saved_edit", {"id": 2, "name": "Dead links", "filter": "gone"}),
    ("saved_list", {}),
    ("saved_show", {"id": 2}),
    ("saved_check", {"id": 1}),
    ("saved_test", {"id": 1}),
    ("saved_results", {"id": 1, "limit": 1}),
    ("saved_remove", {"id": 2}),
    ("saved_remove", {"id": 2}),
    ("mute_add", {"place": HOST, "text": "Visitor number 17", "kind": "behind"}),
    ("mute_list", {}),
    ("mute_list", {"place": HOST}),
    ("mute_remove", {"place": HOST, "text": "Visitor number 18"}),
    ("muted", {"url": PAGE}),
    ("origin", {"url": PAGE}),
    ("watch_remove", {"url": [PAGE]}),
    ("site_audit", {"site": HOST}),
    ("site_audit", {"site": HOST, "issue": "description-missing"}),
    ("enqueue_seeds", {"seeds": ["http://seed.example/"], "scope": "host", "depth": 2}),
    ("enqueue_seeds", {"seeds": ["http://seed.example/few/"], "limit": 3, "max_hosts": 1, "rules":
                       "<urltransform><redirect base='seed.example/old'>seed.example/few/</redirect></urltransform>"}),
    ("crawl_status", {}),
    ("explain_visit", {"url": PAGE}),
    ("drop_site", {"site": "seed.example"}),
    ("start_run", {"kind": "audit", "site": HOST}),
    ("submit_job", {"xml": JOB}),
    ("keep_query", {"xml": JOB}),
    ("jobs", {"limit": 5}),
    ("usage", {"days": 2}),
    ("favourites", {}),
    ("favourite", {"name": "Broken"}),
    ("packages", {}),
    ("job", {"id": 1}),
    ("job_query", {"id": 1}),
    ("job_log", {"id": 1}),
    ("job_files", {"id": 1}),
    ("pause_jobs", {"id": ["2"]}),
    ("resume_jobs", {"id": ["2", "99"]}),
    ("refresh_favourite", {"name": "Broken"}),
    ("cancel_jobs", {"id": ["1"]}),
    ("job_result", {"id": 1}),
    ("job_file", {"id": 1, "name": "none.txt"}),
    ("refresh_job", {"id": "1"}),
    ("forget_favourite", {"name": "Broken"}),
    ("delete_jobs", {"id": ["1"]}),
    ("start_import", lambda folder: {"file": sent_file(folder), "name": "again.warc"}),
    ("import_sent_file", {"file": "none.warc"}),
    ("clean_jobs", {}),
    ("check", lambda folder: {"url": [(folder / "site.txt").read_text()], "as": "me"}),
    ("export", {"kind": "cdxj", "site": HOST, "to": "2024-02-01"}),
    ("export", {"kind": "markdown", "site": HOST, "to": "2024-02-01"}),
    ("export_file", {"kind": "cdxj", "site": HOST, "to": "2024-02-01", "file": "out.cdxj"}),
    ("import", lambda folder: {"sources": [str(folder / "in.warc")]}),
    ("import_upload", lambda folder: {"file": sent_file(folder), "name": "again.warc"}),
    ("publish", lambda folder: {"folder": str(folder / "published")}),
    ("clone", lambda folder: {"url": str(folder / "published"), "folder": str(folder / "clone")}),
    ("pull", lambda folder: {"folder": str(folder / "clone")}),
    ("migrate", lambda folder: {"target": str(folder / "target.toml")}),
    ("backup", lambda folder: {"folder": str(folder / "backup")}),
    ("restore", {"folder": "no-such-backup"}),
    ("verify", {}),
    ("verify_archive", {}),
    ("compact", {"quick": True}),
    ("doctor", {}),
]  # fmt: skip

DIFFERENT_BY_NATURE = {
    "storage", "backup", "doctor", "settings", "list_audit", "verify", "compact", "stats", "watch_test", "migrate",
    "saved_test", "set_setting", "reset_setting", "usage",
}  # fmt: skip
"""Their rows tell of the place where they run; their fields are compared, their values are not."""


def test_every_whole_number_has_bounds_that_the_database_can_hold() -> None:
    unbounded = [
        (operation.name, one.alias)
        for operation in all_operations().values()
        for one in operation.parameters_in("http")
        if one.kind == "integer" and not (one.declared.at_most or 2**63) < 2**63
    ]
    assert unbounded == []


def settled(value: Any) -> Any:
    """A row without what differs between two runs."""
    if isinstance(value, dict):
        return {name: settled(part) for name, part in value.items() if name not in VOLATILE}
    if isinstance(value, list):
        return [settled(part) for part in value]
    return STAMP.sub("TIME", value) if isinstance(value, str) else value


@dataclass
class Run:
    """The archive of one door, and what the script answered there."""

    folder: Path
    told: dict[int, Told] = field(default_factory=dict)

    @property
    def place(self) -> Path:
        return self.folder / "archive"

    def raw(self, given: Given) -> Raw:
        return given(self.folder) if callable(given) else given


SETTINGS = Settings(fetch=FetchSettings(private="always"))


def whole_page() -> Observation:
    moment = datetime(2024, 1, 2, tzinfo=UTC)
    page, style = (Response(url, url, 200, (), b"<p>whole</p>", moment) for url in (WHOLE, WHOLE + "style.css"))
    whole = WholePage((Observation(style, Outcome.NEW),), (), b"\x89PNG picture", "whole")
    return Observation(page, Outcome.NEW, whole=whole)


def begun(folder: Path, site: str) -> None:
    """A folder with an archive and the files that commands read."""
    folder.mkdir()
    with Archive(folder / "archive", clock=lambda: NOW) as archive:
        fill(archive)
        archive.record([whole_page()])
        token = accounts_of(archive).create_token("owner", None, "write", to_millis(NOW))
    (folder / "token.txt").write_text(token)
    (folder / "site.txt").write_text(site)
    (folder / "target.toml").write_text(f'[archive]\npath = "{folder / "moved"}"\n')
    warc = Path(__file__).parent.parent / "formats" / "warc" / "small.warc"
    (folder / "in.warc").write_bytes(warc.read_bytes() if warc.exists() else WARC)


def sent_file(folder: Path) -> Path:
    """A file that whoever takes it may move."""
    return Path(shutil.copy(folder / "in.warc", folder / "sent.warc"))


PAYLOAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>imported</p>"
WARC = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000001>\r\n"
    b"WARC-Target-URI: http://imported.example/\r\nWARC-Date: 2024-01-05T00:00:00Z\r\n"
    b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
) % (len(PAYLOAD), PAYLOAD)


@pytest.fixture(scope="module")
def site() -> Iterator[ScriptedSite]:
    served = ScriptedSite()
    served.set("/", b"<p>one</p>")
    yield served
    served.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, site: ScriptedSite) -> dict[str, Run]:
    """The script, carried out through every door."""
    base = tmp_path_factory.mktemp("contract")
    begun(base / "first", site.url("/"))
    names = ("operation", "command", "http", "job")
    found = {name: Run(shutil.copytree(base / "first", base / name)) for name in names}
    for run in found.values():
        (run.folder / "target.toml").write_text(f'[archive]\npath = "{run.folder / "moved"}"\n')
    carry_out_by_command(found["command"])
    for name in ("operation", "http", "job"):
        with Archive(found[name].place, settings=SETTINGS, clock=lambda: NOW) as archive:
            if name == "http":
                with running(archive) as web:
                    carry_out(found[name], archive, web)
            else:
                carry_out(found[name], archive, None, jobs=name == "job")
    return found


def carry_out(run: Run, archive: Archive, web: WebClient | None, *, jobs: bool = False) -> None:
    token = (run.folder / "token.txt").read_text()
    known = all_operations()
    for place, (name, given) in enumerate(SCRIPT):
        operation, raw = known[name], run.raw(given)
        if web is not None and operation.route is not None:
            run.told[place] = over_http(operation, web, token, raw)
        elif jobs and has_own_step(operation):
            run.told[place] = in_a_job(operation, archive, raw)
        else:
            found = directly(operation, archive, raw)
            if web is None and not jobs:
                run.told[place] = found


def carry_out_by_command(run: Run) -> None:
    known = all_operations()
    for place, (name, given) in enumerate(SCRIPT):
        operation, raw = known[name], run.raw(given)
        if operation.verb:
            run.told[place] = by_command(operation, run.place, raw, run.folder)
        else:
            with Archive(run.place, clock=lambda: NOW) as archive:
                directly(operation, archive, raw)


def same_rows(operation: Operation[Any, Any], one: Told, other: Told, door: Door) -> None:
    """The same answer, beside which a door may still tell what it told in earlier releases."""
    rows = [with_old_fields(door, operation.name, row) for row in one.rows]
    if door == "cli" and not rows and one.none is not None:
        rows = [one.none]
    if operation.answer is Document:
        assert STAMP.sub("TIME", (other.document or b"").decode("utf-8", "replace")) == STAMP.sub(
            "TIME", (one.document or b"").decode("utf-8", "replace")
        )
    elif operation.name in DIFFERENT_BY_NATURE:
        assert [sorted(row) for row in other.rows[:1]] == [sorted(row) for row in rows[:1]]
    elif operation.status != 204:
        assert settled(other.rows) == settled(rows)


def places(shows: Callable[[Operation[Any, Any]], Any]) -> pytest.MarkDecorator:
    """The places of the script whose operation a door shows."""
    found = [place for place, (name, _) in enumerate(SCRIPT) if shows(all_operations()[name])]
    return pytest.mark.parametrize("place", found, ids=[f"{place}-{SCRIPT[place][0]}" for place in found])


def has_own_step(operation: Operation[Any, Any]) -> bool:
    """Whether a job can be asked the same; compaction and files of a job are tested with the jobs."""
    return bool(operation.step) and operation.name not in ("compact", "export_file", "import_sent_file")


def test_the_script_has_every_operation() -> None:
    assert set(all_operations()) == {name for name, _ in SCRIPT}


@places(lambda operation: operation.verb)
def test_the_command_line_answers_as_the_operation(runs: dict[str, Run], place: int) -> None:
    operation = all_operations()[SCRIPT[place][0]]
    one, other = runs["operation"].told[place], runs["command"].told[place]
    assert (other.error, other.status) == (one.error, one.status)
    same_rows(operation, one, other, "cli")


@places(lambda operation: operation.route)
def test_http_answers_as_the_operation(runs: dict[str, Run], place: int) -> None:
    operation = all_operations()[SCRIPT[place][0]]
    assert operation.route is not None
    one, other = runs["operation"].told[place], runs["http"].told[place]
    if one.error and not one.rows:
        assert other.error == one.error
        assert other.status == http_status(one, operation.route.method in IN_BODY)
    else:
        assert other.status == operation.status
        same_rows(operation, one, other, "http")


@places(has_own_step)
def test_a_job_answers_as_the_operation(runs: dict[str, Run], place: int) -> None:
    operation = all_operations()[SCRIPT[place][0]]
    one, other = runs["operation"].told[place], runs["job"].told[place]
    assert (other.error, other.status) == (one.error, one.status if not one.rows else 0)
    if operation.answer is Rows:
        assert settled(other.rows) == settled([as_attributes(row) for row in one.rows])
    elif operation.answer is Value:
        assert {**as_attributes(one.rows[0]), **other.rows[0]} == other.rows[0]


def as_attributes(row: dict[str, Any]) -> dict[str, str]:
    filled = {name: value for name, value in row.items() if value not in (None, "", [])}
    return {name: _attribute(value) for name, value in filled.items() if not _is_nested(value)}


def _is_nested(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(part, dict) for part in value)


def _attribute(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return " ".join(map(_attribute, value))
    return json.dumps(value) if isinstance(value, dict) else str(value)


BAD: list[tuple[str, str, Any]] = [
    *((name, "site", "nowhere.example") for name in ("map", "report", "broken", "rank", "categories", "export")),
    ("mapdiff", "site", "nowhere.example"),
    ("links", "url", "nowhere.example"),
    *((name, "site", ["nowhere.example"]) for name in ("search", "near", "when")),
    *((name, "at", "soonish") for name in ("map", "broken", "rank", "links", "search", "near", "categories")),
    ("extract", "at", "soonish"),
    *((name, "from", "2024-13-45") for name in ("history", "versions", "diff", "mapdiff")),
    *((name, "limit", "many") for name in ("history", "versions", "search", "near", "jobs", "changes")),
    ("watch_alerts", "limit", "many"),
    *((name, "limit", "0") for name in ("history", "search", "near", "jobs", "changes", "list_audit")),
    ("rank", "top", "10000000"),
    ("map", "depth", "-1"),
    ("map", "format", "papyrus"),
    ("diff", "format", "papyrus"),
    *((name, "url", "http://never.example/x") for name in ("history", "versions", "get", "diff", "explain_visit")),
    *((name, "url", "http://never.example/x") for name in ("sets", "set_members", "screenshot", "shown_text")),
    *((name, "url", "::not a url::") for name in ("history", "versions", "get", "links", "explain_visit")),
    ("search", "block", ["papyrus"]),
    ("search", "q", '"'),
    ("complete", "q", "v"),
    ("show_project", "name", "nowhere"),
    ("add_to_project", "crawl", ["http://never.example/x"]),
    ("job", "id", "999"),
    ("favourite", "name", "nowhere"),
    ("enqueue_seeds", "include", ["("]),
    ("enqueue_seeds", "rules", "<urltransform>"),
    ("enqueue_seeds", "limit", 0),
    ("watch_add", "every", "often"),
    ("watch_add", "cron", "0 0 31 2 *"),
    ("watch_remove", "url", ["http://never.example/x"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, site: ScriptedSite) -> Iterator[tuple[Run, Archive, WebClient]]:
    base = tmp_path_factory.mktemp("bad")
    begun(base / "bad", site.url("/"))
    run = Run(base / "bad")
    with Archive(run.place, settings=SETTINGS, clock=lambda: NOW) as archive, running(archive) as web:
        yield run, archive, web


@pytest.mark.parametrize(("name", "parameter", "value"), BAD, ids=[f"{n}-{p}-{v}" for n, p, v in BAD])
def test_bad_input_is_refused_alike(
    asked: tuple[Run, Archive, WebClient], name: str, parameter: str, value: Any
) -> None:
    run, archive, web = asked
    operation = all_operations()[name]
    raw = {**run.raw(next(given for known, given in SCRIPT if known == name)), parameter: value}
    one = directly(operation, archive, raw)
    assert one.error, one.rows
    assert "\n" not in one.error
    if operation.verb:
        other = by_command(operation, run.place, raw, run.folder)
        assert (other.error, other.status) == (one.error, one.status)
    if operation.route is not None:
        other = over_http(operation, web, (run.folder / "token.txt").read_text(), raw)
        in_body = operation.route.method in IN_BODY
        assert (other.error, other.status) == (one.error, http_status(one, in_body))
    if operation.step and operation.name != "export_file":
        other = in_a_job(operation, archive, raw)
        assert (other.error, other.status) == (one.error, one.status)
