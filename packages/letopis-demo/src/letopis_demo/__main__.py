"""`python -m letopis_demo`: the simulated web as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from letopis.errors import LetopisError
from letopis_demo.server import Clock, DemoServer, SimulatedClock
from letopis_demo.story_web import StoryWorld
from letopis_demo.world import START, World


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m letopis_demo", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port to listen on, 0 picks a free one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=7)
    parser.add_argument("--pages", type=int, default=60, help="pages a host")
    parser.add_argument("--pace", type=float, default=1.0, help="2 makes pages change twice as often")
    parser.add_argument("--speed", type=float, default=1.0, help="seconds of history in one real second, 0 stands")
    parser.add_argument("--skip", type=float, default=0.0, help="days of history that have already passed")
    parser.add_argument("--crawl-delay", type=float, default=1.0, help="Crawl-delay of the shops, 0 for none")
    parser.add_argument(
        "--noisy", type=float, default=0.1, help="share of pages with a clock, counter or advertisement"
    )
    parser.add_argument("--bulk", type=float, default=1.0, help="how much longer than usual the texts are")
    parser.add_argument("--layout", choices=("addresses", "names", "ports"), default="addresses")
    parser.add_argument("--log", type=Path, help="file for one line a request")
    parser.add_argument(
        "--story", type=int, metavar="DAY", help="five small sites as they were on that day (0 to 364), by their names"
    )
    return parser.parse_args(argv)


async def _serve(server: DemoServer) -> None:
    """Serve until a signal asks to end."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with server:
        sys.stdout.write(f"listening on http://{server.address}/\n")
        sys.stdout.flush()
        await stopped.wait()


def main(argv: list[str]) -> int:
    """Run the simulated web; returns the exit status."""
    options = _arguments(argv)
    world = World(
        options.seed,
        options.hosts,
        options.pages,
        pace=options.pace,
        crawl_delay=options.crawl_delay,
        noisy=options.noisy,
        bulk=options.bulk,
    )
    clock: Clock = SimulatedClock(START + timedelta(days=options.skip), options.speed)
    if options.story is not None:
        world, options.layout = StoryWorld(options.seed), "names"
        clock = SimulatedClock(START + timedelta(days=options.story), speed=0)
    with ExitStack() as stack:
        log = stack.enter_context(options.log.open("w")) if options.log else None
        asyncio.run(_serve(DemoServer(world, clock, addresses=options.layout, port=options.port, log=log)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LetopisError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_status)
