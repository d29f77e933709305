"""XSLT from strangers over queries and results, and the stylesheets that the package brings."""

from __future__ import annotations

from importlib.resources import files

from letopis.errors import UsageError
from letopis.graph import Bounds
from letopis.graph import transform as run_xslt

STYLESHEETS = {
    "map-page": "a page with the hierarchical map of a site",
    "sitemap": "sitemap.xml of the pages of a map",
    "news-rss": "RSS of what is new on a site, from mapdiff",
    "broken-page": "a page of broken links, by the page they stand on",
    "text": "plain text of any result",
}
"""Stylesheets of the package by name."""
QUERY_BOUNDS = Bounds(seconds=10.0, memory=512 << 20, output=1 << 20)
RESULT_BOUNDS = Bounds(seconds=60.0, memory=2 << 30, output=256 << 20)


def transform(result: bytes, stylesheet: bytes | str) -> bytes:
    """What a stylesheet makes of a result: one of the package by its name, or the bytes of any other.

    It can read no files and no network, and time, memory, recursion and the
    size of what it makes are bounded. UsageError says what stopped it.
    """
    if isinstance(stylesheet, str):
        return run_stylesheet(result, packaged(stylesheet), f"'{stylesheet}'", RESULT_BOUNDS)
    return run_stylesheet(result, stylesheet, "the stylesheet given", RESULT_BOUNDS)


def run_stylesheet(document: bytes, stylesheet: bytes, what: str, bounds: Bounds = QUERY_BOUNDS) -> bytes:
    """The transformation in a process of its own; `what` names the stylesheet in what is told."""
    try:
        return run_xslt(document, stylesheet, bounds=bounds)
    except UsageError as fault:
        raise UsageError(f"{what}: {fault}") from None


def packaged(name: str) -> bytes:
    """A stylesheet of the package; UsageError lists their names."""
    if name not in STYLESHEETS:
        raise UsageError(f"there is no stylesheet '{name[:64]}'; known are {', '.join(STYLESHEETS)}")
    return files("letopis.jobs.language").joinpath("styles", f"{name}.xsl").read_bytes()
