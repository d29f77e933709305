"""The campaign against faults: tries of each row of `docs/reliability.md`, counted in `docs/reliability.json`.

    make campaign [CAMPAIGN_SECONDS=600]                 # all rows; goes on where the last run ended
    python tools/campaign.py run [ROW ...] [--tries N]   # with tests/site on PYTHONPATH
    python tools/campaign.py page                        # writes docs/reliability.md

A try has a number and is the same whenever it is made again. Rows take turns of half a minute each until their goal,
the time or the number of tries is reached; a fault is printed with its number, and the run ends with status 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign_results import add_result, read_results
from fault_histories import live_through
from killed_verbs import KilledVerbs, small_site
from random_damage import RandomDamage
from random_histories import quick_coding
from reliability_page import GOALS, write_page

Try = Callable[[int], int]
"""Makes the try of a number; how many tries that counts for. AssertionError tells of a fault."""
TURN = 30.0


@contextmanager
def _histories(folder: Path) -> Iterator[Try]:
    def one(number: int) -> int:
        history = live_through(folder / str(number), number)
        if history.kills:
            add_result("kills", history.kills)
        return 1

    yield one


@contextmanager
def _kills(folder: Path) -> Iterator[Try]:
    with small_site(folder / "site") as site:
        verbs = KilledVerbs(folder / "world", site)

        def one(number: int) -> int:
            kind = verbs.kill_one(number)
            if kind:
                add_result(f"kills of {kind}", 1)
            return 1 if kind else 0

        yield one


@contextmanager
def _damages(folder: Path) -> Iterator[Try]:
    damage = RandomDamage(folder / "world")

    def one(number: int) -> int:
        with quick_coding():
            damage.damage_one(number)
        return 1

    yield one


ROWS = {"histories": _histories, "kills": _kills, "damages": _damages}


def run_rows(names: list[str], seconds: float, tries: int) -> int:
    """How many faults there were."""
    faults, end, made = 0, time.monotonic() + seconds, dict.fromkeys(names, 0)
    while names and time.monotonic() < end:
        for name in list(names):
            until = min(end, time.monotonic() + TURN)
            with tempfile.TemporaryDirectory(prefix="letopis-") as folder, ROWS[name](Path(folder)) as one:
                while time.monotonic() < until and not _is_done(name, made[name], tries):
                    faults += _tried(name, one)
                    made[name] += 1
            if _is_done(name, made[name], tries):
                names.remove(name)
    return faults


def _is_done(name: str, made: int, tries: int) -> bool:
    tried = read_results().get(name)
    return made >= tries if tries else tried is not None and tried.count >= GOALS[name]


def _tried(name: str, one: Try) -> int:
    """Makes the next try of a row; its number is kept first, so that a try that ends all is not begun again."""
    number = int(add_result(name, 0).figures.get("next", 0))
    add_result(name, 0, next=number + 1)
    try:
        add_result(name, one(number))
    except Exception as error:
        traceback.print_exc()
        sys.stderr.write(f"{name} {number}: {type(error).__name__}: {error}\n")
        add_result(name, 1, 1)
        return 1
    return 0


def main() -> int:
    """Status 1 when there were faults."""
    parser = argparse.ArgumentParser(description="Try faults, and write down how it went.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="make tries")
    run.add_argument("rows", nargs="*", choices=[*ROWS, []], help="rows; default: all")
    run.add_argument("--seconds", type=float, default=600.0, help="how long, all rows together")
    run.add_argument("--tries", type=int, default=0, help="so many tries of each row; default: until its goal")
    verbs.add_parser("page", help="write docs/reliability.md")
    asked = parser.parse_args()
    if asked.verb == "page":
        write_page(read_results())
        return 0
    faults = run_rows(asked.rows or list(ROWS), asked.seconds, asked.tries)
    sys.stdout.write(f"{faults} faults\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
