"""What verbs and jobs share: which version somebody means, after a check where it needs one, and checks as rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from letopis.archive import Archive
from letopis.model import Check, Version
from letopis.monitor.monitor import Monitor

_CHECK_FIELDS = (
    "url", "final_url", "checked_at", "available", "status", "outcome", "version", "digest", "length",
    "content_type", "redirects", "error", "warnings", "meaningful", "score", "blocks", "cached", "changed_for_you",
)  # fmt: skip


def check_row(check: Check) -> dict[str, Any]:
    """A check with the names that people's scripts rely on."""
    row = {name: getattr(check, name) for name in _CHECK_FIELDS}
    row["redirects"] = [{"url": hop.url, "status": hop.status, "location": hop.location} for hop in check.redirects]
    return row


def version_asked(
    archive: Archive, url: str, at: datetime | None, *, offline: bool = False, private_ok: bool | None = None,
    browser: bool = False,
) -> Version:  # fmt: skip
    """The version valid at a time, now where none is given.

    A time later than the last check brings a check first, unless `offline`.
    `private_ok` None goes by the settings of the command line. With
    `browser` that check sees the page as a browser shows it.
    """
    if offline:
        return archive.get(url, at=at)
    with Monitor(archive) as monitor:
        if private_ok is not None:
            monitor.options = replace(monitor.options, private_ok=private_ok)
        if browser:
            monitor.use_browser()
        resource = monitor.get(url)
        return resource.get_last_version() if at is None else resource.get_version(at)


def sides_asked(
    archive: Archive, url: str, start: datetime | None, end: datetime | None, *, offline: bool = False,
    private_ok: bool | None = None,
) -> tuple[Version, Version]:  # fmt: skip
    """The two versions of a difference; by default the newest and the one before it, without a check."""
    newest = archive.get(url)
    new = version_asked(archive, url, end, offline=offline, private_ok=private_ok) if end else newest
    if start:
        return version_asked(archive, url, start, offline=offline, private_ok=private_ok), new
    return archive.get(url, version=max(0, newest.number - 1)), new
