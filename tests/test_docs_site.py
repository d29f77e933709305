"""The docs are a site: it builds without a warning, holds every page, and can be searched."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import letopis

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site") / "docs"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


def test_every_page_of_the_docs_is_in_the_site(site: Path) -> None:
    pages = [path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")]
    assert [str(page) for page in pages if not (site / page).is_file()] == []


def test_the_site_can_be_searched(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"] if "politeness" in entry["text"].lower()}
    assert "decisions/0014-one-politeness-book.html" in found


def test_what_scripts_use_is_documented_with_its_docstrings(site: Path) -> None:
    text = (site / "reference" / "python.html").read_text()
    for name in letopis.__all__:
        assert f">{name}<" in text or f".{name}" in text, name


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    text = (site / "quickstart.html").read_text()
    assert [part for part in text.split('src="')[1:] if part.startswith(("http:", "https:", "//"))] == []


def test_the_mark_above_every_page_leads_to_a_front_page_whose_links_are_there(site: Path) -> None:
    front = (site / "index.html").read_text()
    assert '<a href="index.html" title="Letopis"' in (site / "quickstart.html").read_text()
    links = {link.partition("#")[0] for link in re.findall(r'(?:href|src)="([^"?]+)"', front) if "://" not in link}
    assert {"guide/walk-journalist.html", "images/wide-light/overview.webp"} <= links
    assert [link for link in links if link not in ("", ".") and not (site / link).exists()] == []
