"""What an archive says of its looks against the log of the web that it looked at: line by line, without any I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from bench.witness.web import Silence, WebLine

_SLACK = 10.0
"""Seconds between the time that a look names and the time of the web: the machine may be busy."""
_ROUNDED = 0.002
"""The record keeps whole milliseconds."""
_HOP_SLACK = 60.0
"""Redirects are followed by turns, so a look may begin long before it ends."""
_NOT_MODIFIED = 304
_RETRIED = (502, 503, 504)
_FAILED = ("connect", "timeout", "reset", "protocol", "dns", "other")
_ROBOTS = "/robots.txt"


class Claim(NamedTuple):
    """One look as the record tells it; `digest` is that of the version that was current after it."""

    url: str
    time: float
    status: int
    available: bool | None
    outcome: str
    failure: str
    version: int | None
    digest: str
    hops: tuple[tuple[str, int], ...] = ()
    final_url: str = ""

    @property
    def host(self) -> str:
        """Host and port."""
        return self.url.split("/")[2]


class AlertClaim(NamedTuple):
    """One alert of a watch."""

    url: str
    time: float
    kind: str
    version: int | None


class Contradiction(NamedTuple):
    """What was said, and what the web says to it."""

    url: str
    time: float
    said: str
    but: str


class Comparison(NamedTuple):
    """How many lines were held against each other, and where they contradict."""

    claims: int
    lines: int
    retries: int
    not_asked: int
    alerts: int
    contradictions: tuple[Contradiction, ...]


def compare(
    lines: Sequence[WebLine], silences: Sequence[Silence], claims: Sequence[Claim], alerts: Sequence[AlertClaim] = ()
) -> Comparison:
    """Each look has its answers in the log of the web, and each answer its look, with the same content."""
    asked = [line for line in lines if not line.url.endswith(_ROBOTS)]
    log = _WebLog(asked)
    found: list[Contradiction] = []
    by_url: defaultdict[str, list[Claim]] = defaultdict(list)
    # Looks that got an answer are served first: what is left over is judged by what stands beside it.
    for claim in sorted(claims, key=lambda claim: (claim.status == 0, claim.time)):
        found += _look(claim, log, silences)
    for claim in sorted(claims, key=lambda claim: claim.time):
        found += _succession(claim, by_url[claim.url])
        by_url[claim.url].append(claim)
    retries, untold = log.left_over(by_url)
    found += untold
    for alert in alerts:
        found += _alert(alert, by_url[alert.url])
    not_asked = sum(claim.available is None for claim in claims)
    return Comparison(len(claims), len(asked), retries, not_asked, len(alerts), tuple(found))


class _WebLog:
    """The answers of the web that no look has claimed yet."""

    def __init__(self, lines: Iterable[WebLine]) -> None:
        self._free: defaultdict[str, list[WebLine]] = defaultdict(list)
        for line in lines:
            self._free[line.url].append(line)

    def take(self, url: str, status: int, at: float, slack: float, *, whole: bool | None = None) -> WebLine | None:
        """The last answer before a time, else the first one after it; None where there is none.

        A look names the time at which its answer had come, however long whoever looked was stopped then.
        """
        fitting = [
            line for line in self._free[url]
            if line.status == status and line.began - slack <= at <= line.ended + slack
            and (whole is None or line.whole == whole)
        ]  # fmt: skip
        if not fitting:
            return None
        nearest = min(fitting, key=lambda line: (line.ended > at + _ROUNDED, abs(line.ended - at)))
        self._free[url].remove(nearest)
        return nearest

    def take_late(self, url: str, at: float) -> WebLine | None:
        """An answer to somebody who did not wait for it."""
        statuses = {line.status for line in self._free[url]}
        return next(filter(None, (self.take(url, each, at, _HOP_SLACK) for each in statuses)), None)

    def take_cut(self, url: str, at: float) -> WebLine | None:
        """An answer that ended early."""
        statuses = {line.status for line in self._free[url] if not line.whole}
        return next(filter(None, (self.take(url, each, at, _HOP_SLACK, whole=False) for each in statuses)), None)

    def left_over(self, told: dict[str, list[Claim]]) -> tuple[int, list[Contradiction]]:
        """How many answers were tried again within their look, and those that nobody tells of."""
        retries, untold = 0, []
        for url, lines in self._free.items():
            for line in lines:
                again = line.status in _RETRIED or not line.whole
                if again and any(0 <= claim.time - line.began <= _HOP_SLACK for claim in told.get(url, ())):
                    retries += 1
                else:
                    untold.append(Contradiction(url, line.began, "nothing", f"it answered {line.status}"))
        return retries, untold


def _look(claim: Claim, log: _WebLog, silences: Sequence[Silence]) -> Iterator[Contradiction]:
    """One look against the answers that it must have got."""
    if claim.available is None:
        return
    for url, status in claim.hops:
        if log.take(url, status, claim.time, _HOP_SLACK) is None:
            yield _contradiction(claim, f"no redirect {status} was sent from {url}")
    last = claim.final_url or claim.url
    if claim.status == 0 or claim.failure in _FAILED:
        yield from _failed_look(claim, last, log, silences)
        return
    line = log.take(last, claim.status, claim.time, _SLACK)
    if line is None and claim.outcome == "changed" and log.take(last, _NOT_MODIFIED, claim.time, _SLACK) is not None:
        return  # it was asked whether an earlier version still holds, while another look saw a later one
    if line is None:
        yield _contradiction(claim, "no such answer was sent then")
    elif not line.whole:
        yield _contradiction(claim, "the answer ended early")
    elif claim.status == 304 and claim.outcome != "unchanged":
        yield _contradiction(claim, "it was said not to be modified")
    elif claim.status == 200 and claim.digest != line.digest:
        yield _contradiction(claim, f"the body that was sent is {line.digest}")
    elif (claim.status < 400) != claim.available:
        yield _contradiction(claim, f"the answer was {claim.status}")


def _failed_look(claim: Claim, url: str, log: _WebLog, silences: Sequence[Silence]) -> Iterator[Contradiction]:
    """A look that got no whole answer: somebody was silent, or broke off."""
    if claim.available:
        yield _contradiction(claim, "a failed look was told as available")
    host = url.split("/")[2]
    silent = any(
        each.host == host and each.began - _SLACK <= claim.time <= each.ended + _HOP_SLACK for each in silences
    )
    if claim.failure == "timeout" and log.take_late(url, claim.time) is not None:
        return  # the answer was sent, and came after somebody had given up
    if log.take_cut(url, claim.time) is None and not silent:
        yield _contradiction(claim, "the host was there, and no answer of it ended early")


def _succession(claim: Claim, before: Sequence[Claim]) -> Iterator[Contradiction]:
    """New, changed or unchanged: against what the record itself said of the page before."""
    known = next((each.digest for each in reversed(before) if each.digest), "")
    wrong = {"new": bool(known), "changed": not known or known == claim.digest, "unchanged": known != claim.digest}.get(
        claim.outcome, False
    )
    if wrong:
        yield _contradiction(claim, f"the version before was {known or 'none'}")


def _alert(alert: AlertClaim, looks: Sequence[Claim]) -> Iterator[Contradiction]:
    """An alert against the look of its time, or, for a change, against the looks up to then."""
    said = f"alert: {alert.kind}"
    then = [look for look in looks if abs(look.time - alert.time) <= _ROUNDED and look.available is not None]
    match alert.kind:
        case "changed":
            before = [look for look in looks if look.time <= alert.time + _ROUNDED]
            if not any(look.version == alert.version and _changes(look, before) for look in before):
                yield Contradiction(alert.url, alert.time, said, f"no look brought version {alert.version} by then")
        case "unavailable":
            if not any(not look.available for look in then):
                yield Contradiction(alert.url, alert.time, said, "it was available")
        case "recovered":
            if not any(look.available for look in then):
                yield Contradiction(alert.url, alert.time, said, "it was not available")


def _changes(look: Claim, looks: Sequence[Claim]) -> bool:
    """A page changes when another text comes, and when its first one comes after it was asked in vain."""
    in_vain = any(each.available is False and each.time < look.time for each in looks)
    return look.outcome == "changed" or (look.outcome == "new" and in_vain)


def neglected(claims: Iterable[Claim], urls: Iterable[str], every: float, until: float) -> list[Contradiction]:
    """Watched pages that were not looked at for much longer than they should have been, whatever state they were in."""
    longest = 12 * every + 60
    times: defaultdict[str, list[float]] = defaultdict(list)
    for claim in claims:
        times[claim.url].append(claim.time)
    return [
        Contradiction(url, earlier, f"watched every {every:g} s", f"nobody looked for {later - earlier:.0f} s")
        for url in urls
        for earlier, later in pairwise([*sorted(times[url]), until])
        if later - earlier > longest
    ]


def _contradiction(claim: Claim, but: str) -> Contradiction:
    said = f"{claim.outcome} {claim.status} {claim.failure} version {claim.version} {claim.digest}"
    return Contradiction(claim.url, claim.time, said, but)


class Hurry(NamedTuple):
    """Two requests to one host that followed each other too soon."""

    earlier: WebLine
    later: WebLine


def hurried(lines: Iterable[WebLine], delay: float) -> list[Hurry]:
    """Requests to one host whose beginnings lie nearer than `delay` seconds; robots.txt is asked outside of turns."""
    by_host: defaultdict[str, list[WebLine]] = defaultdict(list)
    for line in lines:
        if not line.url.endswith(_ROBOTS):
            by_host[line.host].append(line)
    return [
        Hurry(earlier, later)
        for each in by_host.values()
        for earlier, later in pairwise(sorted(each))
        if later.began - earlier.began < delay
    ]
