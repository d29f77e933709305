"""Crawling: agents that take URLs, check them, record the results and plan the next visits."""

from letopis.crawl.agent import Agent, CrawlLimits
from letopis.crawl.commits import CrawlPause, CrawlStats
from letopis.crawl.fleet import Fleet, crawl_on_cluster
from letopis.crawl.levels import CrawlLevel, LevelHooks, crawl_levels
from letopis.crawl.runner import CrawlOptions, crawl, crawl_lock, enqueue_seeds, freshness, open_agent
from letopis.crawl.selection import CrawlSelection, unusable_plans

__all__ = [
    "Agent",
    "CrawlLevel",
    "CrawlLimits",
    "CrawlOptions",
    "CrawlPause",
    "CrawlSelection",
    "CrawlStats",
    "Fleet",
    "LevelHooks",
    "crawl",
    "crawl_levels",
    "crawl_lock",
    "crawl_on_cluster",
    "enqueue_seeds",
    "freshness",
    "open_agent",
    "unusable_plans",
]
