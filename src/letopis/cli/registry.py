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
    "put": Verb("storing", "Store a version by hand"),
    "get": Verb("storing", "Print a page as it is, was, or last was"),
    "versions": Verb("storing", "List the versions of a page"),
    "check": Verb("checking", "Look at pages now: available, changed, changed for you"),
    "history": Verb("checking", "List every check of a page"),
    "serve": Verb("serving", "Web interface and HTTP API"),
    "stats": Verb("upkeep", "Show totals of the archive"),
}


def load_verb(name: str) -> click.Command:
    """The command of a verb; it is the attribute of its module with the verb's name."""
    module = import_module(f"letopis.cli.verbs.{VERBS[name].module}")
    command: click.Command = getattr(module, name.replace("-", "_") + "_verb")
    return command
