"""Links as of any date: adjacency, maps, ranks, broken links, and what changed between two dates."""

from letopis.graph.changed import Changes, changes_of
from letopis.graph.difference import EVENTS, Difference, EventRow, map_difference, site_difference
from letopis.graph.follower import LinkIndex
from letopis.graph.formats import MAP_FORMATS, MapFormat
from letopis.graph.graph import Graph, Snapshot
from letopis.graph.hierarchy import Tree, root_of, tree, walk
from letopis.graph.map_data import SitemapFile, sitemap_files
from letopis.graph.moments import Moments
from letopis.graph.naming import Name, names
from letopis.graph.outline import Outline, OutlineRow, outline
from letopis.graph.parted import flow_on
from letopis.graph.ranking import Ranked, pagerank, rank_site
from letopis.graph.report import Finding, ReportRow, findings, report
from letopis.graph.rows import (
    BrokenRow,
    LinkRow,
    RankRow,
    bad_links,
    broken_links,
    broken_rows,
    links_asked,
    links_in,
    links_of_site,
    links_out,
    rank_rows,
)
from letopis.graph.site_map import MapPage, SiteMap, site_map
from letopis.graph.sketch import Sketch, sketch
from letopis.graph.stylesheet import Bounds, transform
from letopis.graph.weighing import keep_ranks

__all__ = [
    "EVENTS",
    "MAP_FORMATS",
    "Bounds",
    "BrokenRow",
    "Changes",
    "Difference",
    "EventRow",
    "Finding",
    "Graph",
    "LinkIndex",
    "LinkRow",
    "MapFormat",
    "MapPage",
    "Moments",
    "Name",
    "Outline",
    "OutlineRow",
    "RankRow",
    "Ranked",
    "ReportRow",
    "SiteMap",
    "SitemapFile",
    "Sketch",
    "Snapshot",
    "Tree",
    "bad_links",
    "broken_links",
    "broken_rows",
    "changes_of",
    "findings",
    "flow_on",
    "keep_ranks",
    "links_asked",
    "links_in",
    "links_of_site",
    "links_out",
    "map_difference",
    "names",
    "outline",
    "pagerank",
    "rank_rows",
    "rank_site",
    "report",
    "root_of",
    "site_difference",
    "site_map",
    "sitemap_files",
    "sketch",
    "transform",
    "tree",
    "walk",
]
