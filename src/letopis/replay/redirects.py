"""Where archived redirects and refreshing pages lead on replay: to what readers saw then, never back to themselves.

Addresses that differ by scheme, `www`, case or a slash at the end share one timeline, so a redirect between them would
lead to itself for ever; the capture that answers is shown instead.
"""

from __future__ import annotations

import re
from dataclasses import replace

from selectolax.lexbor import LexborHTMLParser

from letopis.archive import Archive
from letopis.archive.captures import ArchivedResponse, TimelineCapture, load_capture, timeline_of
from letopis.errors import UnknownUrl
from letopis.model.times import timestamp
from letopis.tuples import NamedTuple
from letopis.urls import join, surt

FOLLOWED_WITHIN = 60_000
"""Milliseconds within which a crawler that follows a redirect asks for its target."""
_HEAD = 64 * 1024
_MOST_HOPS = 20
"""Redirects after which browsers give up as well."""
_REFRESH = re.compile(r"\s*(\d{1,6})(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?[\"']?([^\"']+)", re.IGNORECASE | re.ASCII)


class ReplayTarget(NamedTuple):
    """A capture to go on to; `delay` in seconds."""

    time: int
    url: str
    delay: int = 0


class ShownCapture(NamedTuple):
    """What is shown for a capture: mostly itself; and where it leads, if it is a redirect."""

    moment: TimelineCapture
    stored: ArchivedResponse
    target: ReplayTarget | None = None


def shown_capture(archive: Archive, moment: TimelineCapture) -> ShownCapture:
    """Reads a capture. A redirect to its own key leads to the nearest capture of that key that is none."""
    stored = load_capture(archive, moment)
    if not stored.location:
        return ShownCapture(moment, stored)
    if surt(stored.location) != surt(moment.url):
        return ShownCapture(moment, stored, _followed(archive, moment.time, stored.location))
    answer = timeline_of(archive, moment.url).closest_answer(moment.time)
    if answer is None:
        # It has no target: the answer is shown as it was, and leads nowhere.
        return ShownCapture(moment, replace(stored, location=""))
    if timestamp(answer.time) == timestamp(moment.time):
        # Both have one URL.
        return ShownCapture(answer, load_capture(archive, answer))
    return ShownCapture(moment, stored, ReplayTarget(answer.time, answer.url))


def _followed(archive: Archive, time: int, url: str) -> ReplayTarget:
    """The capture that the crawler made next, if it followed; else whatever is nearest."""
    after = timeline_of(archive, url).after(time - 1)
    follows = after is not None and after.time - time <= FOLLOWED_WITHIN
    return ReplayTarget(after.time if after is not None and follows else time, url)


class RedirectCircle(UnknownUrl):
    """A captured redirect that leads to no page: readers see a message instead."""


def ends_in_circle(archive: Archive, moment: TimelineCapture, fixed: int | None = None) -> bool:
    """Whether a captured redirect leads on without an end, from capture to capture or all of them at a `fixed` time."""
    for _ in range(_MOST_HOPS):
        target = shown_capture(archive, moment).target
        if target is None or surt(target.url) == surt(moment.url):
            return False
        following = timeline_of(archive, target.url).closest(target.time if fixed is None else fixed)
        if following is None:
            return False
        moment = following
    return True


def refresh_target(archive: Archive, moment: TimelineCapture, stored: ArchivedResponse) -> ReplayTarget | None:
    """Where a page sends its readers by `<meta http-equiv=refresh>`, if that is another page that was captured.

    Browsers ignore it in the sandbox in which archived pages are shown.
    """
    head = stored.body[:_HEAD]
    if b"refresh" not in head.lower():
        return None
    tree = LexborHTMLParser(head.decode("utf-8", "replace"))
    base = tree.css_first("base[href]")
    origin = (join(moment.url, base.attributes.get("href") or "") if base else None) or moment.url
    for node in tree.css("meta[http-equiv][content]"):
        found = _REFRESH.match(node.attributes.get("content") or "")
        if found is None or (node.attributes.get("http-equiv") or "").strip().lower() != "refresh":
            continue
        url = join(origin, found[2].strip())
        if url and surt(url) != surt(moment.url) and timeline_of(archive, url).first() is not None:
            return _followed(archive, moment.time, url)._replace(delay=int(found[1]))
    return None
