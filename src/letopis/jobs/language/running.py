"""One query at work: its steps in their order, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from lxml import etree

from letopis.archive import Archive
from letopis.crawl import Figures
from letopis.errors import LetopisError
from letopis.graph import Graph, LinkIndex
from letopis.jobs.query import Surroundings
from letopis.model import parse_time, to_millis
from letopis.search import WordIndex
from letopis.urls import Rules, Verdict


class Cancelled(LetopisError):
    """A job was stopped before its end; what it had recorded stays."""


@dataclass
class Run:
    """What the steps of one query share.

    `mode` is how the query wants its pages indexed, `domains` what it took
    from the cache, `figures` and `judged` what its downloads did so far.
    """

    around: Surroundings
    rules: Rules
    mode: str = "full"
    domains: list[str] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    judged: dict[str, Verdict] = field(default_factory=dict)

    @property
    def archive(self) -> Archive:
        """The archive that is asked."""
        return self.around.archive

    @cached_property
    def links(self) -> LinkIndex:
        """The index of links, which may be behind."""
        return LinkIndex(self.archive)

    @cached_property
    def words(self) -> WordIndex:
        """The index of words, which may be behind."""
        return WordIndex(self.archive)

    def graph(self) -> Graph:
        """All links, up to date."""
        self.links.catch_up(lambda done: None, self.around.progress.cancelled)
        self.go_on()
        return self.links.graph()

    def fresh_words(self) -> WordIndex:
        """The words, up to date."""
        self.words.catch_up(lambda done: None, self.around.progress.cancelled)
        self.go_on()
        return self.words

    def go_on(self) -> None:
        """Raises Cancelled when nobody wants the answer any more."""
        if self.around.progress.cancelled():
            raise Cancelled("the job was stopped; what it had recorded stays")

    def moment(self, step: etree._Element, name: str = "at") -> datetime | None:
        """A time that a step names, None where it does not."""
        text = step.get(name)
        return None if text is None else parse_time(text, self.around.clock())

    def millis(self, step: etree._Element, name: str = "at") -> int:
        """The same in milliseconds, now where the step names none."""
        return to_millis(self.moment(step, name) or self.around.clock())


Step = Callable[[etree._Element, Run], bytes]
Steps = Mapping[str, Step]


def flag(step: etree._Element, name: str) -> bool:
    """Whether an attribute says yes."""
    return step.get(name, "false").strip() in ("true", "1")


def number(step: etree._Element, name: str) -> int | None:
    """A number that an attribute gives."""
    text = step.get(name)
    return None if text is None else int(text)


def text_of(step: etree._Element) -> str:
    """The text of an element without blanks around it."""
    return (step.text or "").strip()


def texts(step: etree._Element, name: str) -> list[str]:
    """The texts of the children of a name."""
    return [text_of(child) for child in step.iterchildren(name)]


def run_steps(steps: list[etree._Element], run: Run, known: Steps) -> bytes:
    """One element a step, in their order. A failing step fails the query, with its name in the sentence."""
    done: list[bytes] = []
    for place, step in enumerate(steps, 1):
        name = str(step.tag)
        run.around.progress.step(place, len(steps), name)
        run.go_on()
        try:
            done.append(known[name](step, run))
        except Cancelled:
            raise
        except LetopisError as fault:
            raise type(fault)(f"step {place}, <{name}>: {fault}") from fault
        run.around.progress.share(1.0)
    return b"\n".join(done)
