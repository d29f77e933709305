"""Steps that answer from links: map, mapdiff, broken, links, pagerank. The rows are those of the verbs."""

from __future__ import annotations

from lxml import etree

from letopis.graph import MAP_FORMATS, broken_links, links_asked, rank_rows, rank_site, site_difference, site_map
from letopis.graph.ranking import DAMPING
from letopis.jobs.language.markup import rows
from letopis.jobs.language.running import Run, flag, number
from letopis.model import from_millis
from letopis.urls import site


def map_step(step: etree._Element, run: Run) -> bytes:
    """The hierarchical map of a site: nested pages, as `letopis map --format xml` writes them."""
    at = run.millis(step)
    found = site_map(run.graph(), step.get("site", ""), at, depth=number(step, "depth"), errors=flag(step, "all"))
    text = "".join(MAP_FORMATS["xml"].write(found)).encode("utf-8", "replace")
    return text.partition(b"?>\n")[2].rstrip(b"\n")


def mapdiff_step(step: etree._Element, run: Run) -> bytes:
    """What happened to a site between two times, as `letopis map diff` tells it."""
    where, times = step.get("site", ""), (run.millis(step, "from"), run.millis(step, "to"))
    found = site_difference(run.graph(), where, *times)
    span = {"from": from_millis(min(times)), "to": from_millis(max(times))}
    return rows("mapdiff", {"site": site(where), **span}, "event", (row.row() for row in found))


def broken_step(step: etree._Element, run: Run) -> bytes:
    """Links of a site that lead to an error, as `letopis broken` lists them."""
    at, name = run.millis(step), site(step.get("site", ""))
    found = broken_links(run.graph().as_of(at, name), name)
    return rows("broken", {"site": name, "at": from_millis(at)}, "link", (row._asdict() for row in found))


def links_step(step: etree._Element, run: Run) -> bytes:
    """The links of a page, to a page, or of a site, as `letopis links` lists them."""
    at, what, direction = run.millis(step), step.get("url", ""), step.get("direction", "out")
    found = links_asked(run.graph(), what, at, inward=direction == "in", outward=direction == "out")
    about = {"url": what, "direction": direction, "at": from_millis(at)}
    return rows("links", about, "link", (row._asdict() for row in found))


def pagerank_step(step: etree._Element, run: Run) -> bytes:
    """Pages by rank, as `letopis rank` orders them, to convergence with the coefficient given."""
    at, name = run.millis(step), site(step.get("site", "")) if step.get("site") else None
    damping = float(step.get("coefficient", DAMPING))
    moment = run.graph().as_of(at, name)
    ranked = rank_site(moment, name, external=flag(step, "external"), damping=damping)
    about = {"coefficient": damping, "site": name, "at": from_millis(at)}
    return rows("pagerank", about, "page", (row._asdict() for row in rank_rows(moment, ranked, number(step, "top"))))
