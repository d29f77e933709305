"""Export, import and upkeep through several doors: the same kinds, the same bytes, the same sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lxml import etree
from served_archive import WebClient, fill, running

from letopis.archive import Archive, utc_now
from letopis.archive.audit import audit_entries
from letopis.archive.jobs import COMMAND_LINE
from letopis.cli.main import main
from letopis.errors import LetopisError, NotFound, UsageError
from letopis.jobs import JobContext
from letopis.jobs.language.interpreter import run_query
from letopis.model.rights import OWN, READ, WRITE
from letopis.operations import Context, bind, json_value, parameters_of
from letopis.operations.exchange import EXPORT_KINDS, PART_KINDS, ExportQuery, export
from letopis.operations.imports import ImportCommand, import_archives
from letopis.operations.job_files import language_schema, parse_job_file

SITE = "example.org"


class Quiet:
    """The progress of a job that nobody looks at."""

    def step(self, number: int, of: int, what: str) -> None: ...
    def share(self, done: float, figures: str = "") -> None: ...
    def log(self, line: str) -> None: ...
    def cancelled(self) -> bool:
        return False


@dataclass
class Doors:
    """One archive, asked by calling operations, by the command line, over HTTP and by jobs."""

    archive: Archive
    web: WebClient
    output: Path

    @property
    def context(self) -> Context:
        return Context(self.archive, rights=READ | WRITE | OWN)

    def exported(self, **given: str | bool) -> bytes:
        return b"".join(export(self.context, bind(ExportQuery, given, utc_now())).bytes())

    def command(self, *words: str) -> int:
        return main(["--archive", str(self.archive.folder), *words])

    def job(self, step: str) -> dict[str, str]:
        query = parse_job_file(f"<query>{step}</query>".encode(), self.archive.settings)
        around = JobContext(
            self.archive, self.archive.settings, Quiet(), COMMAND_LINE, True, self.output, self.archive.clock
        )
        return dict(etree.fromstring(run_query(query, around)).attrib)


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    folder = tmp_path_factory.mktemp("doors")
    with Archive(folder / "archive") as archive:
        fill(archive)
        with running(archive) as web:
            yield Doors(archive, web, folder / "output")


def test_the_kinds_of_exports_stand_once(doors: Doors) -> None:
    shown = parameters_of(ExportQuery)[0].choices
    schema = etree.fromstring(language_schema())
    [attribute] = schema.iterfind(".//{*}element[@name='export']//{*}attribute[@name='kind']")
    routes = doors.web.get("/openapi.json").json()["paths"]["/api/v1/export"]["get"]["parameters"]
    http = next(one for one in routes if one["name"] == "kind")["schema"]["enum"]
    jobs = [value.get("value") for value in attribute.iter("{*}enumeration")]
    assert tuple(http) == tuple(jobs) == shown == EXPORT_KINDS
    assert EXPORT_KINDS[:5] == ("warc", "wacz", "cdxj", "static", "parquet")


ENDINGS = {"urls": "txt", "bookmarks": "html"}


@pytest.mark.parametrize("kind", ["warc", "cdxj", "wacz", "har", "urls", "opml", "bookmarks"])
def test_streams_are_the_same_bytes_in_every_door(
    doors: Doors, kind: str, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    wanted = doors.exported(kind=kind, site=SITE)
    assert doors.command("export", kind, "--site", SITE) == 0
    assert capfdbinary.readouterr().out == wanted
    assert doors.command("export", kind, "--site", SITE, "-o", str(tmp_path / "out")) == 0
    assert (tmp_path / "out").read_bytes() == wanted
    answer = doors.web.get(f"/api/v1/export?kind={kind}&site={SITE}")
    assert (answer.status, answer.body) == (200, wanted)
    name = answer.headers["content-disposition"]
    assert re.search(rf'"{SITE}-\d{{4}}-\d\d-\d\d\.{ENDINGS.get(kind, kind)}', name), name
    row = doors.job(f'<export kind="{kind}" site="{SITE}"/>')
    assert (doors.output / Path(row["file"]).name).read_bytes() == wanted
    assert row["bytes"] == str(len(wanted))


@pytest.mark.parametrize("kind", ["har", "mhtml", "singlefile"])
def test_one_page_is_the_same_bytes_in_every_door(
    doors: Doors, kind: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    page = f"http://{SITE}/page"
    wanted = doors.exported(kind=kind, url=page)
    assert doors.command("export", kind, page) == 0
    assert capfdbinary.readouterr().out == wanted
    answer = doors.web.get(f"/api/v1/export?kind={kind}&url={page}")
    assert (answer.status, answer.body) == (200, wanted)
    row = doors.job(f'<export kind="{kind}" url="{page}"/>')
    assert (doors.output / Path(row["file"]).name).read_bytes() == wanted


@pytest.mark.parametrize("kind", PART_KINDS)
def test_verbs_and_jobs_tell_the_same_of_what_they_wrote(
    doors: Doors, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doors.command("--json", "export", kind, "-o", str(tmp_path / "out")) == 0
    row = json.loads(capsys.readouterr().out)
    job = doors.job(f'<export kind="{kind}" file="all-{kind}"/>')
    counts = {name: str(value) for name, value in row.items() if name not in ("file", "bytes")}
    assert counts == {name: value for name, value in job.items() if name not in ("file", "bytes")}
    assert Path(job["file"]).name == f"all-{kind}"
    assert row["kind"] == kind


@pytest.mark.parametrize(("name", "value"), [("site", "never.example"), ("project", "never")])
@pytest.mark.parametrize("kind", ["warc", "cdxj", "wacz"])
def test_what_is_not_known_is_said_before_the_first_byte(
    doors: Doors, kind: str, name: str, value: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(NotFound) as caught:
        export(doors.context, bind(ExportQuery, {"kind": kind, name: value}, utc_now()))
    assert doors.command("export", kind, f"--{name}", value) == 3
    said = capfdbinary.readouterr()
    assert (said.out, said.err.decode()) == (b"", f"letopis: {caught.value}\n")
    answer = doors.web.get(f"/api/v1/export?kind={kind}&{name}={value}")
    assert (answer.status, answer.json()["detail"]) == (404, str(caught.value))
    with pytest.raises(NotFound, match=str(caught.value)):
        doors.job(f'<export kind="{kind}" {name}="{value}"/>')


@pytest.mark.parametrize("kind", ["static", "parquet"])
def test_folders_are_no_streams(doors: Doors, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert doors.command("export", kind) == 2
    said = capsys.readouterr()
    answer = doors.web.get(f"/api/v1/export?kind={kind}")
    assert (said.out, answer.status) == ("", 400)
    assert said.err == f"letopis: {answer.json()['detail']}\n"


def test_compression_is_for_warc_alone_in_every_door(doors: Doors, capsys: pytest.CaptureFixture[str]) -> None:
    assert doors.command("export", "wacz", "--compression", "zstd", "-o", "/dev/null") == 2
    sentence = capsys.readouterr().err.removeprefix("letopis: ").strip()
    answer = doors.web.get("/api/v1/export?kind=wacz&compression=zstd")
    assert (answer.status, answer.json()["detail"]) == (400, sentence)
    with pytest.raises(UsageError, match=sentence):
        doors.job('<export kind="wacz" compression="zstd"/>')
    assert doors.exported(kind="warc", compression="none").startswith(b"WARC/1.1")


def test_the_last_day_of_a_span_is_part_of_it(doors: Doors, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    whole = doors.exported(kind="cdxj", to="2024-01-01T23:59:59Z")
    assert whole.count(b"\n") > 3
    assert doors.command("export", "cdxj", "--to", "2024-01-01") == 0
    assert capfdbinary.readouterr().out == whole
    assert doors.web.get("/api/v1/export?kind=cdxj&to=2024-01-01").body == whole
    assert doors.job('<export kind="cdxj" to="2024-01-01"/>')["captures"] == str(whole.count(b"\n"))


def test_a_source_that_is_no_archive_is_an_error_and_the_others_stay(
    tmp_path: Path, doors: Doors, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.warc.gz").write_bytes(doors.exported(kind="warc", site=SITE))
    (tmp_path / "notes.txt").write_text("nothing of the web\n")
    (tmp_path / "empty.warc").touch()
    files = [str(tmp_path / name) for name in ("notes.txt", "good.warc.gz", "empty.warc")]
    with Archive(tmp_path / "operation") as archive:
        answer = import_archives(Context(archive, rights=OWN), bind(ImportCommand, {"sources": files}, utc_now()))
        sentences = [str(fault) for fault in answer.faults]
        assert [files[0] in sentences[0], files[2] in sentences[1], len(sentences)] == [True, True, 2]
        assert archive.stats().versions == answer.value.versions > 0
        assert [entry.action for entry in audit_entries(archive, 1)] == ["imported"]
    assert main(["--archive", str(tmp_path / "command"), "--json", "import", *files]) == 2
    said = capsys.readouterr()
    assert json.loads(said.out) == json_value(answer.value)
    assert [line for line in said.err.splitlines() if "nothing was imported" in line] == [
        f"letopis: {sentence}" for sentence in sentences
    ]
    assert main(["--archive", str(tmp_path / "command"), "-q", "import", files[1]]) == 0, "all of it is there already"


@pytest.mark.parametrize(
    ("words", "status"), [(["never.warc"], 2), (["never.cdxj"], 2), (["notes", "--kind", "papyrus"], 2)]
)
def test_a_source_that_is_not_there_or_of_no_kind_is_refused(
    tmp_path: Path, words: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--archive", str(tmp_path / "a"), "import", *words]) == status
    assert capsys.readouterr().err.count("\n") == 1


def test_damage_is_listed_and_sums_up_to_the_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://example.org/", b"<p>one</p>" * 40)
    [pack] = (tmp_path / "a" / "packs").glob("*.log")
    data = bytearray(pack.read_bytes())
    data[-10] ^= 0xFF
    pack.write_bytes(bytes(data))
    assert main(["--archive", str(tmp_path / "a"), "--json", "verify"]) == 6
    said = capsys.readouterr()
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert rows
    assert all(set(row) == {"where", "problem"} for row in rows)
    assert said.err.startswith(f"letopis: {len(rows)} problems found")
    assert main(["--archive", str(tmp_path / "never"), "verify"]) == 3
    assert not (tmp_path / "never").exists()


def test_compacting_tells_the_same_by_verb_and_job_and_is_written_down(
    tmp_path: Path, doors: Doors, capsys: pytest.CaptureFixture[str]
) -> None:
    row = doors.job('<compact quick="true"/>')
    assert doors.command("--json", "compact", "--quick") == 0
    assert set(json.loads(capsys.readouterr().out)) == set(row)
    assert [(entry.action, entry.subject) for entry in audit_entries(doors.archive, 2)] == [("compacted", "quick")] * 2
    assert main(["--archive", str(tmp_path / "never"), "compact"]) == 3
    assert not (tmp_path / "never").exists()


def test_the_doctor_finds_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--archive", str(tmp_path / "a"), "--json", "doctor"]) == 0
    rows = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert rows["catalogue"]["ok"] is None
    found = rows["letopis-migrate"]
    assert (found["ok"], found["detail"]) == (True, "installed")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "catalogue.sqlite").write_bytes(b"no database" * 100)
    assert main(["--archive", str(tmp_path / "b"), "doctor"]) == 1
    said = capsys.readouterr()
    assert "WRONG  catalogue" in said.out
    assert said.err.startswith("letopis: catalogue: ")


def test_a_clone_is_pulled_or_detached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://example.org/", b"<p>one</p>")
    assert main(["--archive", str(tmp_path / "a"), "-q", "publish", str(tmp_path / "out")]) == 0
    assert main(["clone", str(tmp_path / "out"), str(tmp_path / "copy")]) == 0
    assert main(["pull", str(tmp_path / "copy"), "--detach", "--fill"]) == 2
    assert main(["pull", str(tmp_path / "copy"), "--detach"]) == 0
    assert main(["pull", str(tmp_path / "copy")]) == 3
    (tmp_path / "key").write_text(" \n")
    assert (
        main(["--archive", str(tmp_path / "a"), "publish", str(tmp_path / "out"), "--key", str(tmp_path / "key")]) == 2
    )
    assert "put a secret into it" in capsys.readouterr().err


def test_errors_of_operations_are_ours(doors: Doors) -> None:
    with pytest.raises(LetopisError, match="kind"):
        bind(ExportQuery, {"kind": "papyrus"}, utc_now())
