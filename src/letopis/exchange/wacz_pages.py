"""The list of pages in a WACZ: what a reader is shown first, with titles and text to search in."""

from __future__ import annotations

import json
from typing import IO

from letopis.exchange.warc_out import Exported, stable_id
from letopis.extract import page
from letopis.extract.sniff import bare_type
from letopis.model import Check, Outcome, Page, rfc3339

_HTML = ("text/html", "application/xhtml+xml")
_MOST_TEXT = 1024 * 1024


class PageList:
    """Takes records URL by URL; each version of a page gets its title, the newest of a URL its text too.

    Lines go to a file that the caller gives, since there may be millions.
    """

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._waiting: tuple[Check, Page] | None = None
        self.main: Check | None = None
        self._say({"format": "json-pages-1.0", "id": "pages", "title": "All Pages", "hasText": True})

    def take(self, exported: Exported) -> None:
        """Notes a record when it holds a page."""
        check = exported.check
        if exported.record.kind != "response" or check.outcome not in (Outcome.NEW, Outcome.CHANGED):
            return
        if bare_type(check.content_type) not in _HTML:
            return
        if self.main is None:
            self.main = check
        found = page(exported.body, check.url, check.headers, detect_language=False)
        self._flush(newest=self._waiting is not None and self._waiting[0].url != check.url)
        self._waiting = (check, found)

    def close(self) -> None:
        """Writes the last line; nothing may be taken any more."""
        self._flush(newest=True)

    def _flush(self, *, newest: bool) -> None:
        if self._waiting is None:
            return
        check, found = self._waiting
        self._waiting = None
        moment = rfc3339(check.checked_at)
        line = {"id": stable_id("page", check.url, moment), "url": check.url, "ts": moment}
        line["title"] = found.title or check.url
        if newest:
            line["text"] = found.text[:_MOST_TEXT]
        self._say(line)

    def _say(self, line: dict[str, object] | dict[str, str]) -> None:
        self._out.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
