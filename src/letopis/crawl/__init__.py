"""Crawling: agents that take, look, record and plan."""

from letopis.crawl.agent import Agent, Limits
from letopis.crawl.crawl import CrawlOptions, agent, crawl, plant
from letopis.crawl.figures import Figures
from letopis.crawl.fleet import Fleet
from letopis.crawl.selection import Selection

__all__ = ["Agent", "CrawlOptions", "Figures", "Fleet", "Limits", "Selection", "agent", "crawl", "plant"]
