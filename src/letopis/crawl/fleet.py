"""Several agents on one machine: processes, each with its share of the hosts.

A host belongs to one agent by its number. Links to the hosts of others go
through the catalogue; politeness per address goes through the shared gate.
Agents end at once when whoever leads them is killed: a crawl begun anew
would otherwise ask the same hosts beside them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence

from letopis.archive import Archive
from letopis.crawl.agent import Agent
from letopis.crawl.crawl import CrawlOptions, plant
from letopis.crawl.figures import Figures
from letopis.errors import NotReady
from letopis.model import to_millis

_STOP = (signal.SIGINT, signal.SIGTERM)


class Fleet:
    """Runs agents until their work is done, and adds up what they did."""

    def __init__(self, archive: Archive, options: CrawlOptions, agents: int, words: Sequence[str]) -> None:
        """`words` are the arguments of `letopis` for one agent; its share is added."""
        self._archive = archive
        self._options = options
        self._agents = agents
        self._words = list(words)
        self._running: list[asyncio.subprocess.Process] = []
        self._stopping = False
        # Nothing is ever written: agents read the end of it when this process is gone, however that came.
        self._line, self._ours = os.pipe()

    async def run(self) -> Figures:
        """One round after the other while links between agents' hosts are left to follow."""
        plant(self._archive, self._options)
        for number in _STOP:
            asyncio.get_running_loop().add_signal_handler(number, self._stop)
        try:
            return await self._rounds()
        finally:
            os.close(self._ours)
            os.close(self._line)

    async def _rounds(self) -> Figures:
        total = Figures()
        while True:
            results = await self._round(total)
            for figures in results:
                total.add(figures)
            if self._stopping or not self._more(total):
                return total

    def _more(self, total: Figures) -> bool:
        limit = self._options.limits.pages
        if not self._options.limits.once or (limit is not None and total.fetched >= limit):
            return False
        queues = self._archive.catalog.queues
        return bool(queues.waiting().new or queues.due_again(to_millis(self._archive.clock())))

    async def _round(self, total: Figures) -> list[Figures]:
        limit = self._options.limits.pages
        left = None if limit is None else limit - total.fetched
        self._running = [await self._start(index, left) for index in range(self._agents)]
        outputs = await asyncio.gather(*(process.communicate() for process in self._running))
        for process, (_, errors) in zip(self._running, outputs, strict=True):
            if process.returncode:
                raise NotReady(f"an agent ended with status {process.returncode}: {errors.decode()[-500:].strip()}")
        return [Figures.from_row(json.loads(answer)) for answer, _ in outputs]

    async def _start(self, index: int, left: int | None) -> asyncio.subprocess.Process:
        share = ["--share", f"{index}/{self._agents}", "--json", "--quiet"]
        if left is not None:
            part = left // self._agents + (index < left % self._agents)
            share += ["--limit", str(max(1, part))]
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "letopis.cli", *self._words, *share, stdin=self._line,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def _stop(self) -> None:
        self._stopping = True
        for process in self._running:
            if process.returncode is None:
                process.terminate()


def ends_with_its_leader(agent: Agent) -> None:
    """An agent of a fleet does not outlive it; as after any kill, what it had not recorded is fetched again."""
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _when_alone)


def _when_alone() -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        os._exit(1)
