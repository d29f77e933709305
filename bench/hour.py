"""What `letopis run` says in an hour (`--seconds 3600`) against what the web says that it sent, line by line.

python bench/hour.py [--seconds 60] [--hosts 6] [--pages 25] [--delay 1] [--folder DIR [--again]] [--json]

A simulated web of several hosts, one of which dies and returns and one of which lies, is crawled, watched and worked
on by jobs, compaction among them. Afterwards every look of the record is held against the web's own log, every alert
against the looks, every version against the bytes that were sent, and each line of the daemon's log against the counts.
"""

from __future__ import annotations

import argparse
import json
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.measuring.commands import environment  # noqa: E402
from bench.witness.comparison import AlertClaim, Claim, Comparison, Contradiction, compare, hurried, neglected  # noqa: E402
from bench.witness.web import LIES, Silence, WebLine, WitnessWeb, read_lines, serving, write_lines  # noqa: E402
from letopis import Archive  # noqa: E402
from letopis.model import Check  # noqa: E402

WORLD_SPEED = 120.0
_STOPPED_WITHIN = 120.0
_RECORDED_WITHIN = 60.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class HourRow:
    """How many lines were compared, and how many of them contradict the web."""

    seconds: float
    requests: int
    looks: int
    outcomes: dict[str, int]
    failures: dict[str, int]
    retries: int
    not_asked: int
    alerts: dict[str, int]
    jobs: dict[str, int]
    versions_read: int
    log_lines: int
    hurried: int
    contradictions: tuple[Contradiction, ...]


class Daemon:
    """An archive with plans, watches and jobs, and the daemon over it."""

    def __init__(self, folder: Path, seeds: Sequence[str], seconds: float, delay: float) -> None:
        self.archive, self.alerts, self.log = folder / "archive", folder / "alerts.jsonl", folder / "run.log"
        self._folder, self._seeds, self.seconds, self.delay = folder, seeds, seconds, delay

    @property
    def _pause(self) -> float:
        return max(1.0, self.seconds / 240)

    @property
    def every(self) -> float:
        """Seconds between two looks at a watched page."""
        return float(round(max(2.0, self._pause)))

    def plan(self) -> None:
        """Writes down what is to be done."""
        pause = self._pause
        sections = {
            "archive": "path = 'archive'",
            "crawl": f"delay = {self.delay}",
            "monitor": f"delay = {self.delay}\nmin_interval = {min(1.0, pause / 2)}",
            "schedule": f"interval = {4 * pause}\nmin = {2 * pause}\nmax = {16 * pause}",
            "jobs": "workers = 1",
            "serve": "port = 0",
            "fetch": "connect = 3\nfirst_byte = 5\ntotal = 10\nretry_wait = 0.2",
        }
        (self._folder / "letopis.toml").write_text("".join(f"[{each}]\n{sections[each]}\n" for each in sections))
        seeds = self._seeds
        self._letopis("init")
        self._letopis("crawls", "add", *seeds)
        lying = [seeds[-1] + lie for lie in LIES]
        for url in (*seeds, *lying):
            every = f"{self.every:g}s"
            told = ("--when", "changed,unavailable:2,recovered", "--notify", f"file:{self.alerts}")
            self._letopis("watch", "add", url, "--every", every, *told)
        for name, steps in self._queries(seeds, lying).items():
            file = self._folder / f"{name}.xml"
            refresh = f"{max(2, int(self.seconds / 12))}s"
            file.write_text(f'<query name="{name}" package="downloader" refresh="{refresh}">{steps}</query>')
            self._letopis("jobs", "submit", str(file), "--keep")

    @staticmethod
    def _queries(seeds: Sequence[str], lying: Sequence[str]) -> dict[str, str]:
        named = "".join(f"<url>{url}</url>" for url in (*seeds, *lying))
        first = f"<url>{seeds[0]}</url>"
        return {
            "looks": f'<check now="true">{named}</check>',
            "pages": f'<download maxlevel="1" limit="10">{first}</download><crawler mode="full">{first}</crawler>',
            "upkeep": "<compact/>",
        }

    @contextmanager
    def running(self) -> Iterator[Callable[[], bool]]:
        """The daemon at work, and whether it is; it is asked to stop in the end, and must."""
        with self.log.open("w") as log:
            process = subprocess.Popen(
                [*_PROGRAM, "run", "-v", "--json"], cwd=self._folder, stdout=subprocess.DEVNULL, stderr=log,
                env=environment(),
            )  # fmt: skip
            try:
                yield lambda: process.poll() is None
                if process.poll() is not None:
                    raise SystemExit(f"the daemon ended by itself with status {process.returncode}; see {self.log}")
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(_STOPPED_WITHIN)

    def await_record(self, lines: Sequence[WebLine]) -> None:
        """Returns when the record tells of every answer: a daemon that is told to stop cuts off what lasts too long."""
        end = time.monotonic() + _RECORDED_WITHIN
        while time.monotonic() < end:
            with Archive(self.archive) as archive:
                claims, _, _ = claims_of(archive, recorded_urls(self.archive))
            if not any(each.said == "nothing" for each in compare(lines, [], claims).contradictions):
                return
            time.sleep(1.0)

    def said(self, *words: str) -> list[Any]:
        """The answer of a verb: one JSON object a row."""
        return list(map(json.loads, self._letopis(*words, "--json").splitlines()))

    def _letopis(self, *words: str) -> str:
        done = subprocess.run(
            [*_PROGRAM, *words], cwd=self._folder, env=environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"letopis {' '.join(words)}: {done.stderr or done.stdout}")
        return done.stdout


_PROGRAM = (sys.executable, "-m", "letopis.cli")


def claims_of(archive: Archive, urls: Sequence[str]) -> tuple[list[Claim], int, list[Contradiction]]:
    """Every look of the record; and every version read again: how many, and those whose bytes are not what they say."""
    claims: list[Claim] = []
    wrong: list[Contradiction] = []
    read = 0
    for url in urls:
        digests: dict[int, str] = {}
        for listed in archive.versions(url):
            version = archive.get(url, version=listed.number)
            digests[version.number], read = version.digest, read + 1
            if version.digest != listed.digest or len(version.body) != listed.raw_bytes:
                wrong.append(Contradiction(url, listed.time.timestamp(), listed.digest, f"read as {version.digest}"))
        claims += [_claim(check, digests) for check in archive.history(url)]
    return claims, read, wrong


def _claim(check: Check, digests: dict[int, str]) -> Claim:
    hops = tuple((hop.url, hop.status) for hop in check.redirects)
    digest = digests.get(check.version, "") if check.version is not None else ""
    return Claim(
        check.url, check.checked_at.timestamp(), check.status, check.available, str(check.outcome), check.failure,
        check.version, digest, hops, check.final_url,
    )  # fmt: skip


def alert_claims(file: Path) -> list[AlertClaim]:
    """The alerts that were delivered."""
    rows = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return [
        AlertClaim(row["url"], datetime.fromisoformat(row["time"]).timestamp(), row["kind"], row.get("version"))
        for row in rows
    ]


def log_contradictions(log: Path, lines: Sequence[WebLine], claims: Sequence[Claim]) -> tuple[int, list[Contradiction]]:
    """Every line of the daemon's log: its counts agree with each other, and are no more than there were looks."""
    wrong: list[Contradiction] = []
    rows = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    times = sorted(claim.time for claim in claims)
    for row in rows:
        at = datetime.fromisoformat(row["timestamp"]).timestamp()
        if row["event"] == "crawl":
            kinds = row["new"] + row["changed"] + row["unchanged"] + sum(row["errors"].values())
            looks = sum(each <= at + 1 for each in times)
            if row["fetched"] != kinds:
                wrong.append(Contradiction("", at, f"{row['fetched']} fetched", f"{kinds} by kinds"))
            if row["fetched"] > looks:
                wrong.append(Contradiction("", at, f"{row['fetched']} fetched", f"{looks} looks are recorded"))
        elif row["level"] in ("error", "critical"):
            wrong.append(Contradiction("", at, row["event"], "nothing may fail here"))
    return len(rows), wrong


def job_contradictions(daemon: Daemon) -> tuple[dict[str, int], list[Contradiction]]:
    """Jobs have ended well, and each row of a check is a look of the record."""
    wrong: list[Contradiction] = []
    jobs = daemon.said("jobs", "list", "--limit", "1000")
    for job in jobs:
        if job["state"] not in ("done", "queued", "running"):
            wrong.append(Contradiction(job["name"], 0.0, job["state"], job.get("message", "")))
    return dict(Counter(f"{job['name']} {job['state']}" for job in jobs)), wrong


def recorded_urls(archive: Path) -> list[str]:
    """Every URL that the record has looked at, asked of the file itself."""
    with sqlite3.connect(f"file:{archive / 'catalogue.sqlite'}?mode=ro", uri=True) as database:
        return [row[0] for row in database.execute("SELECT url FROM resource WHERE checked IS NOT NULL ORDER BY url")]


def measure(folder: Path, seconds: float, hosts: int, pages: int, delay: float) -> HourRow:
    """Runs for so long, and compares."""
    with serving(WitnessWeb(hosts, pages, seconds, WORLD_SPEED)) as web:
        daemon = Daemon(folder, web.seeds(), seconds, delay)
        daemon.plan()
        with daemon.running() as is_alive:
            while not web.lines and is_alive():
                time.sleep(_POLL_SECONDS)
            web.begin()
            time.sleep(seconds)
            web.end()
            daemon.await_record(web.lines)
        lines, silences = list(web.lines), list(web.silences)
    write_lines(folder / "web.log", lines)
    write_lines(folder / "silences.log", silences)
    return judge(daemon, lines, silences)


def judge(daemon: Daemon, lines: Sequence[WebLine], silences: Sequence[Silence]) -> HourRow:
    """What was said against what the web says."""
    with Archive(daemon.archive) as archive:
        claims, versions, wrong = claims_of(archive, recorded_urls(daemon.archive))
    alerts = alert_claims(daemon.alerts)
    compared: Comparison = compare(lines, silences, claims, alerts)
    watched = [row["url"] for row in daemon.said("watch", "list")]
    ended = max((line.ended for line in lines), default=0.0)
    wrong += neglected(claims, watched, daemon.every, ended)
    log_lines, wrong_lines = log_contradictions(daemon.log, lines, claims)
    jobs, wrong_jobs = job_contradictions(daemon)
    (stats,) = daemon.said("stats")
    if stats["checks"] != len(claims):
        wrong.append(Contradiction("", 0.0, f"stats: {stats['checks']} checks", f"{len(claims)} are recorded"))
    return HourRow(
        daemon.seconds, compared.lines, compared.claims, dict(Counter(claim.outcome for claim in claims)),
        dict(Counter(claim.failure for claim in claims if claim.failure)), compared.retries, compared.not_asked,
        dict(Counter(alert.kind for alert in alerts)), jobs, versions, log_lines,
        len(hurried(lines, daemon.delay - 0.05)),
        (*compared.contradictions, *wrong, *wrong_lines, *wrong_jobs),
    )  # fmt: skip


def main(argv: Sequence[str]) -> int:
    """Prints the counts and every contradiction; 1 where there is any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", help="not needed: the web is simulated")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--hosts", type=int, default=6)
    parser.add_argument("--pages", type=int, default=25, help="pages a host")
    parser.add_argument("--delay", type=float, default=1.0, help="least seconds between two requests to a host")
    parser.add_argument("--folder", type=Path, help="where archive and logs are kept; else they are thrown away")
    parser.add_argument("--again", action="store_true", help="judge what an earlier run left in the folder")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as thrown_away:
        folder = options.folder or Path(thrown_away)
        folder.mkdir(parents=True, exist_ok=True)
        if options.again:
            lines, silences = read_lines(folder / "web.log", WebLine), read_lines(folder / "silences.log", Silence)
            row = judge(Daemon(folder, [], options.seconds, options.delay), lines, silences)
        else:
            row = measure(folder, options.seconds, options.hosts, options.pages, options.delay)
    told = asdict(row) | {"contradictions": [each._asdict() for each in row.contradictions]}
    if options.json:
        print(json.dumps(told))
    else:
        for name, value in told.items():
            print(f"{name}: {len(value) if name == 'contradictions' else value}")
        for each in row.contradictions:
            print(f"{each.time:.3f} {each.url}: said {each.said}, but {each.but}")
    return int(bool(row.contradictions or row.hurried))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
