"""Each step answers the rows of its verb."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from asking import QUICK, Told, ask, demo_web

from letopis.archive import Archive
from letopis.cli.main import main
from letopis.errors import NotFound, UsageError
from letopis.operations import Cancelled


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """An archive with two crawled hosts at two dates."""
    folder = tmp_path_factory.mktemp("known") / "a"
    with demo_web(hosts=2, pages=20) as web, Archive(folder, settings=QUICK, clock=web.clock) as archive:
        hosts = list(web.world.hosts)
        urls = "".join(f"<url>{host}/</url>" for host in hosts)
        query = f'<query><download maxlevel="4">{urls}<exclude>/busy</exclude></download><crawler/></query>'
        ask(archive, query)
        web.now = web.now.replace(day=20)
        ask(archive, query)
    return folder, hosts


def verb_rows(folder: Path, capture: pytest.CaptureFixture[bytes], *words: str) -> list[dict[str, Any]]:
    assert main(["--archive", str(folder), *words, "--json"]) == 0
    return [json.loads(line) for line in capture.readouterr().out.splitlines()]


def as_texts(row: dict[str, Any]) -> dict[str, str]:
    words = {True: "true", False: "false"}
    return {name: words.get(value, str(value)) if isinstance(value, bool) else str(value)
            for name, value in row.items() if value not in (None, "", [])}  # fmt: skip


AT = "2026-01-21T00:00:00Z"
EQUAL = [
    (f'<broken site="{{0}}" at="{AT}"/>', ("broken", "{0}", "--at", AT)),
    (f'<links url="{{0}}" at="{AT}"/>', ("links", "{0}", "--at", AT)),
    (f'<links url="http://{{0}}/" direction="in" at="{AT}"/>', ("links", "http://{0}/", "--in", "--at", AT)),
    ('<mapdiff site="{0}" from="2026-01-11" to="2026-01-21"/>', ("map", "diff", "{0}", "2026-01-11", "2026-01-21")),
    (f'<pagerank site="{{0}}" top="7" at="{AT}"/>', ("rank", "{0}", "--top", "7", "--at", AT)),
    (f'<pagerank external="true" at="{AT}"/>', ("rank", "--external", "--at", AT)),
    (f'<search site="{{0}}" lang="cs" limit="5" at="{AT}">katedra</search>',
     ("search", "katedra", "--site", "{0}", "--lang", "cs", "--limit", "5", "--at", AT)),
    (f'<search block="h1" at="{AT}">katedra</search>', ("search", "katedra", "--block", "h1", "--at", AT)),
    (f'<wordprefix between="3" limit="20" at="{AT}">katedra</wordprefix>',
     ("near", "katedra", "--distance", "3", "--limit", "20", "--at", AT)),
]  # fmt: skip


@pytest.mark.parametrize(("step", "words"), EQUAL, ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_a_step_has_the_rows_of_its_verb(
    known: tuple[Path, list[str]], capfdbinary: pytest.CaptureFixture[bytes], step: str, words: tuple[str, ...]
) -> None:
    folder, hosts = known
    with Archive(folder) as archive:
        found = ask(archive, f"<query>{step.format(*hosts)}</query>")[0]
    rows = verb_rows(folder, capfdbinary, *(word.format(*hosts) for word in words))
    assert rows
    assert found.get("count") == str(len(rows))
    assert [dict(row.attrib) for row in found] == [as_texts(row) for row in rows]


def test_the_map_is_that_of_the_verb(known: tuple[Path, list[str]], capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    folder, hosts = known
    with Archive(folder) as archive:
        found = ask(archive, f'<query><map site="{hosts[0]}" at="{AT}" depth="1"/></query>').find("map")
    [row] = verb_rows(folder, capfdbinary, "map", hosts[0], "--at", AT, "--depth", "1")
    assert [page.get("url") for page in found.iter("page")] == [
        row["url"],
        *(child["url"] for child in row["children"]),
    ]


def test_check_tells_available_and_not(tmp_path: Path) -> None:
    with demo_web(hosts=1) as web, Archive(tmp_path / "a", clock=web.clock) as archive:
        host = web.world.hosts[0]
        urls = f"<url>{host}/</url><url>{host}/nowhere</url><url>{host}/r/1/2</url>"
        pages = list(ask(archive, f"<query><check>{urls}</check></query>").find("check"))
        assert [page.get("outcome") for page in pages] == ["new", "unavailable", "new"]
        assert len([part for part in pages[2] if part.get("location")]) == 3


def test_diff_is_that_of_the_archive(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://x.example/", b"<p>one and two</p>")
        archive.put("http://x.example/", b"<p>one and three</p>")
        shown = ask(archive, '<query><diff url="x.example" format="words"/></query>').find("diff").text
        old, new = (archive.get("http://x.example/", version=number) for number in (0, 1))
        assert shown == archive.difference(old, new, "words")


def test_export_writes_a_file_of_the_job_and_needs_a_place_for_it(known: tuple[Path, list[str]]) -> None:
    folder, hosts = known
    with Archive(folder) as archive:
        for kind, compression, name in (
            ("warc", ' compression="none"', "{}.warc"), ("warc", "", "{}.warc.gz"), ("cdxj", "", "{}.cdxj"),
            ("wacz", "", "mine.wacz"),
        ):  # fmt: skip
            file = ' file="mine.wacz"' if kind == "wacz" else ""
            text = f'<query><export kind="{kind}"{compression} site="{hosts[0]}"{file}/></query>'
            told = ask(archive, text, output=folder / "jobs" / "1").find("export")
            name = name.format(f"{hosts[0].replace(':', '-')}-{archive.clock():%Y-%m-%d}")
            assert told.get("file") == f"jobs/1/{name}"
            assert (folder / "jobs" / "1" / name).stat().st_size == int(told.get("bytes")) > 0
        with pytest.raises(UsageError, match="step 1, <export>: this job may write no files"):
            ask(archive, '<query><export kind="warc"/></query>')


def test_folders_are_exported_as_one_file_with_the_same_bytes_each_time(known: tuple[Path, list[str]]) -> None:
    folder, hosts = known
    job = folder / "jobs" / "2"
    with Archive(folder) as archive:
        for kind, inside, counted in (
            ("static", "index.html", {"files", "written", "removed"}),
            ("parquet", "checks.parquet", {"checks", "versions", "links"}),
        ):  # fmt: skip
            text = f'<query><export kind="{kind}" site="{hosts[0]}"/></query>'
            told = ask(archive, text, output=job).find("export")
            assert set(told.keys()) - {"kind", "file", "bytes"} == counted
            assert min(int(told.get(name)) for name in counted - {"removed"}) > 0
            made = (folder / told.get("file")).read_bytes()
            assert len(made) == int(told.get("bytes"))
            with zipfile.ZipFile(io.BytesIO(made)) as packed:
                assert packed.testzip() is None
                assert inside in packed.namelist()
            ask(archive, text, output=job)
            assert (folder / told.get("file")).read_bytes() == made
        stem = f"{hosts[0].replace(':', '-')}-{archive.clock():%Y-%m-%d}"
    assert sorted(file.name for file in job.iterdir()) == [f"{stem}.parquet.zip", f"{stem}.static.zip"]


class StoppedLater(Told):
    """Stopped while a step is at work."""

    def cancelled(self) -> bool:
        self.shares.append(0.0)
        return len(self.shares) > 5


def test_an_export_that_is_stopped_leaves_nothing_behind(known: tuple[Path, list[str]]) -> None:
    folder, _ = known
    with Archive(folder) as archive, pytest.raises(Cancelled):
        ask(archive, '<query><export kind="static"/></query>', StoppedLater(), output=folder / "jobs" / "3")
    assert list((folder / "jobs" / "3").iterdir()) == []


def test_wordfigure_settles_bases_that_the_next_step_sees(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://x.example/", b"<p>the zorg met zorgova yesterday</p>")
        result = ask(archive, '<query><wordfigure extension="ova"/><search>zorgova</search></query>')
        assert [(word.get("form"), word.get("base")) for word in result.find("wordfigure")] == [("zorgova", "zorg")]
        assert result.find("search").get("count") == "1"


def test_compact_and_cleaner_tell_what_they_did(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        archive.put("http://x.example/", b"<p>one</p>")
        result = ask(archive, '<query><compact quick="true"/><cleaner/></query>')
        assert result.find("compact").get("documents") == "1"
        assert result.find("cleaner").get("jobs") == "0"


def test_a_failing_step_is_named_and_keeps_its_kind(tmp_path: Path) -> None:
    told = Told()
    with Archive(tmp_path / "a") as archive, pytest.raises(NotFound, match="step 2, <mapdiff>: no page of nobody"):
        ask(archive, '<query><cleaner/><mapdiff site="nobody.example" from="yesterday"/></query>', told)
    assert told.steps == [(1, 2, "cleaner"), (2, 2, "mapdiff")]
