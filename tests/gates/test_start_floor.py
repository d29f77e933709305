"""What a command may load and compile before it does anything, counted rather than timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from scripted_site import ScriptedSite
from written_warc import response

PROGRAM = """
import json, sys
compiled = []
sys.addaudithook(lambda event, given: event == "compile" and given[1] == "<string>" and compiled.append(given[0]))
from letopis.cli import main
status = main(sys.argv[1:])
print(json.dumps([status, sorted(sys.modules), len(compiled)]), file=sys.stderr)
"""
MODULES_OF_CHECK = 287
MODULES_OF_GET = 212
MODULES_OF_HELP = 138
MODULES_OF_IMPORT = 265
MODULES_OF_WATCH = 334
COMPILED = 120
"""Texts of code that are made while modules are loaded, most of them by click and the standard library."""


class Start(NamedTuple):
    """What one command loaded and compiled."""

    modules: set[str]
    compiled: int


def start(*words: str | Path) -> Start:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300, check=True
    )
    status, modules, compiled = json.loads(done.stderr.splitlines()[-1])
    assert status == 0, done.stderr
    return Start(set(modules), compiled)


def test_a_check_loads_little(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/", b"<p>One page.</p>")
    start("--archive", tmp_path / "a", "check", url)
    found = start("--archive", tmp_path / "a", "check", "--now", url)
    assert len(found.modules) <= MODULES_OF_CHECK
    assert found.compiled <= COMPILED
    # A page that did not change is neither read nor compared.
    assert not found.modules & {"lxml", "numpy", "tantivy", "letopis.extract", "letopis.change", "letopis.index"}


def test_a_page_out_of_the_record_loads_nothing_that_asks_or_reads_pages(
    tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    url = scripted_site.set("/", b"<p>One page.</p>")
    start("--archive", tmp_path / "a", "check", url)
    found = start("--archive", tmp_path / "a", "get", "--offline", url)
    assert len(found.modules) <= MODULES_OF_GET
    assert found.compiled <= COMPILED
    assert not found.modules & {"asyncio", "ssl", "pycurl", "lxml", "letopis.monitor", "letopis.extract"}


def test_watches_load_no_index(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    start("--archive", tmp_path / "a", "watch", "add", scripted_site.set("/", b"<p>One page.</p>"))
    found = start("--archive", tmp_path / "a", "watch", "run", "--once")
    # Whoever runs watches looks for saved searches, too; where there are none, nothing is searched.
    assert not found.modules & {"numpy", "tantivy", "letopis.index", "letopis.operations.words"}
    # Nor are the other words of `watch` made.
    assert not found.modules & {"letopis.operations.watches", "letopis.operations.saved_searches"}
    assert len(found.modules) <= MODULES_OF_WATCH
    assert found.compiled <= COMPILED


def test_an_import_of_records_loads_no_other_reader_and_no_crawler(tmp_path: Path) -> None:
    (tmp_path / "one.warc").write_bytes(response("http://example.org/", "2024-01-31T12:00:00Z", b"<p>One page."))
    found = start("--archive", tmp_path / "a", "import", tmp_path / "one.warc")
    readers = {f"letopis.exchange.{name}" for name in ("address_lists", "cdx_import", "har", "saved_pages")}
    assert not found.modules & {*readers, "letopis.crawl", "letopis.jobs", "letopis.zrec", "lxml", "urllib.request"}
    # Nor what asks the web, renders pages, watches them or signs anybody in.
    assert not found.modules & {"asyncio", "ssl", "letopis.fetch.client", "letopis.monitor.checker", "argon2"}
    assert len(found.modules) <= MODULES_OF_IMPORT


def test_a_crawl_of_new_pages_loads_no_rules_of_comparison(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/", b"<p>One page.</p>")
    found = start("--archive", tmp_path / "a", "crawl", url, "--once", "--delay", "0")
    compares = {f"letopis.change.{name}" for name in ("noise", "values", "verdict")}
    assert not found.modules & {*compares, "letopis.archive.mute_rules", "letopis.index", "numpy"}


SERVER = """
import asyncio, sys
import letopis.api.server, letopis.cli.verbs.daemon
from letopis.archive import Archive
from letopis.monitor.checker import open_checker

async def wait_for_work(archive):
    async with open_checker(archive):
        print(*sorted(sys.modules))

with Archive(sys.argv[1]) as archive:
    asyncio.run(wait_for_work(archive))
"""


def test_a_server_loads_what_its_first_page_needs_and_no_more(tmp_path: Path) -> None:
    words = [sys.executable, "-c", SERVER, str(tmp_path / "a")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    # Lists, maps, searches, job files, patterns, new addresses of pages and looks at the web bring 40 MB with them.
    late = {"numpy", "lxml.etree", "rapidfuzz", "pycurl", "regex", "tantivy"}
    assert not set(done.stdout.split()) & late


def test_help_loads_no_archive() -> None:
    found = start("--help")
    assert len(found.modules) <= MODULES_OF_HELP
    assert not found.modules & {"sqlite3", "asyncio", "letopis.archive", "letopis.config", "letopis.operations"}
