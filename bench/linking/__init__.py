"""Parts of the benchmark of links: a site with planted broken links, and those who check it."""

from bench.linking.checkers import Checked, by_letopis, by_linkchecker, by_wget
from bench.linking.site import BROKEN, PAGES, planted, serve, site_files

__all__ = ["BROKEN", "PAGES", "Checked", "by_letopis", "by_linkchecker", "by_wget", "planted", "serve", "site_files"]
