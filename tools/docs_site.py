"""What the site of the docs needs beside its settings (mkdocs.yml): a front page, sections by folder, links inside.

The README is the front page: the address of the site and the mark above every page lead to it.
Pages of some folders come and go with the code: they stand in the navigation in the order of their names.
Links to files of the source tree, which the site does not hold, become plain words.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SECTIONS = {"Deploy": "deploy", "Internals": "internals", "Benchmarks": "benchmarks", "Decisions": "decisions"}
NAMED_SECTIONS = {"Guides": "guide", "Reference": "reference"}
"""Sections whose order stands in mkdocs.yml."""
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
FRONT = "index.md"
_LEFT_OUT = ("deploy/kubernetes", "deploy/systemd")


def title_of(page: Path) -> str:
    """The first heading of a page."""
    found = _TITLE.search(page.read_text("utf-8"))
    return found[1].replace("`", "") if found else page.stem


def on_config(config: Any) -> Any:
    """Adds the sections whose pages are found by their folder, and to the others whatever they do not name yet."""
    for section in config.nav:
        [(name, pages)] = section.items()
        if name in NAMED_SECTIONS:
            named = {path for page in pages for path in page.values()}
            pages += [page for page in _pages_in(NAMED_SECTIONS[name]) if named.isdisjoint(page.values())]
    config.nav += [{name: _pages_in(folder)} for name, folder in SECTIONS.items()]
    config.nav.insert(0, {"Letopis": FRONT})
    config.nav += [page for page in _pages_in(".") if "quickstart.md" not in page.values()]
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Adds the README as the front page."""
    readme = (ROOT / "README.md").read_text("utf-8")
    files.append(File.generated(config, FRONT, content=readme.replace("](docs/", "](")))
    return files


def _pages_in(folder: str) -> list[dict[str, str]]:
    return [{title_of(page): str(page.relative_to(DOCS))} for page in sorted((DOCS / folder).glob("*.md"))]


def on_page_markdown(markdown: str, *, page: Any, **others: Any) -> str:
    """A page whose links stay in the site."""
    here = (DOCS / page.file.src_path).parent

    def kept(link: re.Match[str]) -> str:
        text, target = link[1], link[2]
        return link[0] if "://" in target or target.startswith("mailto:") or _is_page(here / target) else text

    return _LINK.sub(kept, markdown)


def _is_page(path: Path) -> bool:
    """Whether the site holds a file."""
    found = path.resolve()
    inside = found.is_relative_to(DOCS) and found.is_file()
    return inside and not str(found.relative_to(DOCS)).startswith(_LEFT_OUT)
