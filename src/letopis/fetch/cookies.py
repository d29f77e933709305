"""The cookie jar of an archive, kept by libcurl and bounded by us."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pycurl

MAX_COOKIES = 5000
MAX_PER_DOMAIN = 50
"""Bounds that no honest site notices; browsers have about the same."""


class CookieJar:
    """Cookies shared by all handles of one transport, in memory or in a file.

    The file has the Netscape form that other tools read too; it is read when
    the jar is made and written by `save`. Floods are cut back to the newest
    cookies of each domain, so one site cannot push out those of the others.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._unchecked = 0
        self._share = pycurl.CurlShare()
        self._share.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_COOKIE)
        self._keeper = pycurl.Curl()
        self.attach(self._keeper)
        if path is not None:
            self._keeper.setopt(pycurl.COOKIEFILE, str(path))
            self._keeper.setopt(pycurl.COOKIELIST, "RELOAD")
            self._keeper.setopt(pycurl.COOKIEJAR, str(path))

    def attach(self, easy: pycurl.Curl) -> None:
        """Makes a handle send and keep the jar's cookies."""
        easy.setopt(pycurl.SHARE, self._share)
        easy.setopt(pycurl.COOKIEFILE, "")

    def note(self, cookies: int) -> None:
        """Counts the cookies of an answer and trims the jar when many have come."""
        self._unchecked += cookies
        if self._unchecked > MAX_COOKIES // 2:
            self.trim()

    def lines(self) -> list[str]:
        """All cookies, a Netscape line each."""
        return list(self._keeper.getinfo(pycurl.INFO_COOKIELIST))

    def trim(self) -> None:
        """Cuts the jar back to its bounds."""
        self._unchecked = 0
        lines = self.lines()
        kept = within_bounds(lines)
        if len(kept) < len(lines):
            self._keeper.setopt(pycurl.COOKIELIST, "ALL")
            for line in kept:
                self._keeper.setopt(pycurl.COOKIELIST, line)

    def save(self) -> None:
        """Writes the file, when the jar has one."""
        if self._path is not None:
            self.trim()
            self._keeper.setopt(pycurl.COOKIELIST, "FLUSH")

    def close(self) -> None:
        """Saves and lets go; handles must have been closed before."""
        self.save()
        self._keeper.close()
        self._share.close()


def within_bounds(lines: Sequence[str]) -> list[str]:
    """The newest cookies of each domain and of all, in their order."""
    kept: list[str] = []
    of_domain: Counter[str] = Counter()
    for line in reversed(lines):
        domain = line.removeprefix("#HttpOnly_").split("\t", 1)[0]
        of_domain[domain] += 1
        if of_domain[domain] <= MAX_PER_DOMAIN and len(kept) < MAX_COOKIES:
            kept.append(line)
    return kept[::-1]
