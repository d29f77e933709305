"""Crawling: agents that take, look, record and plan."""

from letopis.crawl.agent import Agent, Limits
from letopis.crawl.cluster import crawl_on
from letopis.crawl.crawl import CrawlOptions, agent, crawl, plant
from letopis.crawl.figures import Figures
from letopis.crawl.fleet import Fleet, ends_with_its_leader
from letopis.crawl.levels import Level, Watching, crawl_levels
from letopis.crawl.selection import Selection

__all__ = [
    "Agent",
    "CrawlOptions",
    "Figures",
    "Fleet",
    "Level",
    "Limits",
    "Selection",
    "Watching",
    "agent",
    "crawl",
    "crawl_levels",
    "crawl_on",
    "ends_with_its_leader",
    "plant",
]
