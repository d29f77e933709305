"""All verbs with their one line of help and the module that holds them."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import click


class Verb(NamedTuple):
    """Where a verb lives and what it does."""

    module: str
    help: str


VERBS: dict[str, Verb] = {
    "init": Verb("storing", "Make an archive"),
    "check": Verb("checking", "Look at pages now: available, changed, changed for you"),
    "get": Verb("reading", "Print a page as it is, was, or last was"),
    "versions": Verb("storing", "List the versions of a page"),
    "diff": Verb("reading", "Show what changed on a page"),
    "history": Verb("checking", "List every check of a page"),
    "patch": Verb("reading", "Apply a binary difference"),
    "extract": Verb("reading", "Show the common form of a document"),
    "put": Verb("storing", "Store a version by hand"),
    "watch": Verb("watching", "Standing checks: add, list, remove, run"),
    "crawl": Verb("crawling", "Crawl from seeds, politely, and come back when pages change"),
    "why": Verb("scheduling", "Say when a page is next visited, and why then"),
    "simulate": Verb("scheduling", "Compare revisit policies on pages whose changes are known"),
    "run": Verb("running", "The daemon: crawling, watches, jobs, web interface"),
    "demo": Verb("running", "A small simulated web, crawled and shown; needs no network"),
    "serve": Verb("serving", "Web interface and HTTP API"),
    "import": Verb("exchanging", "Take in WARC, WACZ, CDXJ, and what other tools kept"),
    "export": Verb("exporting", "Write the archive for other tools: WARC, WACZ, CDXJ and more"),
    "map": Verb("mapping", "Show the map of a site, or what changed in it, as of any date"),
    "links": Verb("mapping", "List the links of a page or to it, as of any date"),
    "broken": Verb("mapping", "List broken links and where they stand"),
    "rank": Verb("mapping", "Rank pages by the links between them"),
    "search": Verb("searching", "Find pages by their words, as of any date"),
    "near": Verb("searching", "List the words that stand near a word"),
    "when": Verb("searching", "Tell when a phrase first and last stood on any page"),
    "categories": Verb("searching", "Sort the pages of a site into a tree by their key words"),
    "duplicates": Verb("searching", "Find the same document under other addresses"),
    "jobs": Verb("queueing", "The queue of questions: submit, list, show, cancel, refresh"),
    "users": Verb("accounts", "People who may sign in, and their roles"),
    "tokens": Verb("accounts", "Secrets for programs that use the HTTP API"),
    "projects": Verb("accounts", "Named sets of pages"),
    "publish": Verb("replicating", "Write the archive as files that any static server can hand out"),
    "clone": Verb("replicating", "Copy a published archive, or the part of it that you want"),
    "pull": Verb("replicating", "Bring a clone up to date, transferring only differences"),
    "zrec": Verb("records", "Compressed sorted records, synced by ranges"),
    "stats": Verb("totals", "Show totals of the archive"),
    "doctor": Verb("doctoring", "Say whether this installation is sound"),
    "bench": Verb("benching", "Run a benchmark of the source tree"),
    "verify": Verb("upkeep", "Check every byte and every reference; repair"),
    "migrate": Verb("migrating", "Copy the archive to another place and compare"),
    "compact": Verb("upkeep", "Re-compress, carry out retention, give space back"),
}


def load_verb(name: str) -> click.Command:
    """The command of a verb; it is the attribute of its module with the verb's name."""
    module = import_module(f"letopis.cli.verbs.{VERBS[name].module}")
    command: click.Command = getattr(module, name.replace("-", "_") + "_verb")
    return command
