"""The recipes of CONTRIBUTING work: their edits are read from the page, made on a copy of the tree, and tried there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parent.parent
EDIT = re.compile(
    r"^(New file|In) `([^`]+)`[^\n]*\n(?:[^\n`]+[^\n]*\n)*\n```(python|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
PAGES = {
    "a": b"<title>A</title>short",
    "b": b"<title>B</title>" + b"long " * 100,
    "c": b"<title>C</title>middle middle",
}


class Edit(NamedTuple):
    """A file that is written, or changed at some places."""

    path: str
    new: bool
    text: str

    def carry_out(self, tree: Path) -> None:
        file = tree / self.path
        if self.new:
            assert not file.exists(), f"{self.path} is there already"
            file.write_text(self.text)
            return
        text = file.read_text()
        for hunk in self.text.split("@@\n"):
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in " -")
            after = "".join(line[1:] for line in lines if line[0] in " +")
            assert text.count(before) == 1, f"{self.path} has not once:\n{before}"
            text = text.replace(before, after)
        file.write_text(text)


def recipe(title: str) -> list[Edit]:
    """The edits of a chapter of CONTRIBUTING."""
    chapters = (ROOT / "CONTRIBUTING.md").read_text().split("\n## ")
    chapter = next(part for part in chapters if part.startswith(title + "\n"))
    found = [Edit(path, how == "New file", text) for how, path, _, text in EDIT.findall(chapter)]
    assert len(found) == chapter.count("```python") + chapter.count("```diff"), "an edit does not name its file"
    return found


class Tree(NamedTuple):
    """A copy of the package with a recipe carried out, and an archive of its own."""

    folder: Path
    archive: Path
    touched: set[str]

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LETOPIS_")}
        return {**kept, "PYTHONPATH": str(self.folder / "src"), "LETOPIS_ARCHIVE": str(self.archive)}

    def run(self, *words: str, **settings: str) -> str:
        """What a command prints; it must succeed."""
        done = subprocess.run(
            [sys.executable, "-m", "letopis.cli", *words],
            capture_output=True, text=True, env=self.environment() | settings, cwd=self.folder, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def served(self) -> Iterator[str]:
        """The address of the web service while it runs."""
        with subprocess.Popen(
            [sys.executable, "-m", "letopis.cli", "serve", "--port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment(), cwd=self.folder,
        ) as process:  # fmt: skip
            try:
                found = (re.search(r"listening on (http://\S+)", line) for line in process.stdout or ())
                yield next(match[1] for match in found if match).rstrip("/")
            finally:
                process.terminate()


def tree_with(title: str, folder: Path) -> Tree:
    edits = recipe(title)
    shutil.copytree(ROOT / "src" / "letopis", folder / "src" / "letopis", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs" / "guide", folder / "docs" / "guide")
    for edit in edits:
        edit.carry_out(folder)
    return Tree(folder, folder / "archive", {edit.path for edit in edits})


def put_pages(tree: Tree) -> None:
    for name, body in PAGES.items():
        (tree.folder / name).write_bytes(body)
        tree.run("put", f"http://example.org/{name}", name)


def test_a_command_runs_on_the_copy(tmp_path: Path) -> None:
    tree = tree_with("An export format", tmp_path)
    where = subprocess.run(
        [sys.executable, "-c", "import letopis; print(letopis.__file__)"],
        capture_output=True, text=True, env=tree.environment(), check=True,
    )  # fmt: skip
    assert where.stdout.startswith(str(tmp_path))


def test_an_export_format_takes_at_most_four_files(tmp_path: Path) -> None:
    tree = tree_with("An export format", tmp_path)
    assert len(tree.touched) <= 4
    put_pages(tree)
    lines = "".join(f"http://example.org/{name}\t1\n" for name in PAGES)
    assert tree.run("export", "counts") == lines
    assert json.loads(tree.run("export", "counts", "-o", "all.txt", "--json"))["pages"] == len(PAGES)
    assert (tmp_path / "all.txt").read_text() == lines
    assert "counts" in tree.run("export", "--help")
    (tmp_path / "job.xml").write_text('<query><export kind="counts" site="example.org"/></query>')
    tree.run("jobs", "submit", "job.xml", "--wait")
    (made,) = (tree.archive / "jobs" / "1").glob("example.org-*.tsv")
    assert made.read_text() == lines


class TypedPage(BaseHTTPRequestHandler):
    """The same page under a type that the test chooses."""

    content_type = "text/html"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", self.content_type)
        self.end_headers()
        self.wfile.write(b"<title>Page</title>Some text.")

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def typed_page() -> Iterator[str]:
    TypedPage.content_type = "text/html"
    server = ThreadingHTTPServer(("127.0.0.1", 0), TypedPage)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_alert_rule_takes_at_most_four_files(tmp_path: Path, typed_page: str) -> None:
    tree = tree_with("An alert rule", tmp_path)
    assert len(tree.touched) <= 4
    alerts = tmp_path / "alerts.jsonl"
    at_once = {"LETOPIS_MONITOR_MIN_INTERVAL": "0", "LETOPIS_MONITOR_DELAY": "0"}
    tree.run("watch", "add", typed_page, "--when", "type", "--notify", f"file:{alerts}", **at_once)
    tree.run("watch", "run", "--once", **at_once)
    TypedPage.content_type = "text/plain"
    tree.run("watch", "check", typed_page, **at_once)
    tree.run("watch", "run", "--once", **at_once)
    (alert,) = map(json.loads, tree.run("watch", "alerts", "--json").splitlines())
    assert alert["kind"] == "type"
    assert f"{typed_page} is now text/plain, before it was text/html" in alerts.read_text()
    assert "type" in tree.run("watch", "add", "--help")


def test_a_verb_with_its_route_and_its_step_takes_at_most_three_files(tmp_path: Path) -> None:
    tree = tree_with("A verb with its route and its job step", tmp_path)
    assert len(tree.touched) <= 3
    put_pages(tree)
    wanted = [{"url": f"http://example.org/{name}", "bytes": len(PAGES[name])} for name in ("b", "c")]
    rows = tree.run("largest", "example.org", "--top", "2", "--json")
    assert [json.loads(line) for line in rows.splitlines()] == wanted
    assert "largest" in tree.run("--help")
    (tmp_path / "job.xml").write_text('<query><largest site="example.org" top="2"/></query>')
    result = tree.run("jobs", "submit", "job.xml", "--wait")
    assert re.findall(r'<page url="([^"]*)" bytes="(\d+)"', result) == [
        (row["url"], str(row["bytes"])) for row in wanted
    ]
    with tree.served() as base, urlopen(f"{base}/api/v1/largest?site=example.org&top=2") as answer:
        assert json.load(answer) == {"site": "example.org", "pages": wanted}
