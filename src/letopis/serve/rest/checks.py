"""`POST /check`: the one way to make the archive look at the web through HTTP."""

from __future__ import annotations

import threading
from dataclasses import replace

from fastapi import APIRouter, Request

from letopis.archive import Archive
from letopis.errors import MissingExtra, Refused, UsageError
from letopis.fetch import require_browser
from letopis.model import Outcome
from letopis.monitor import CheckOptions, Monitor
from letopis.serve.access import ThePrincipal
from letopis.serve.problems import answers
from letopis.serve.quotas import CHECKS, charge
from letopis.serve.rest.shapes import CheckBody, CheckShape
from letopis.serve.shared import TheArchive

router = APIRouter(tags=["checks"])


def require_rendering(archive: Archive) -> None:
    """UsageError when this service has no browser to render pages with."""
    try:
        require_browser(archive.settings.fetch.chromium)
    except MissingExtra as error:
        raise UsageError(f"this service cannot render pages: {error}") from None


class Lookout:
    """One monitor for all requests, made when the first one comes."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = threading.Lock()
        self._monitor: Monitor | None = None

    def check(self, body: CheckBody) -> CheckShape:
        """Looks, or answers from the record inside the minimum interval."""
        with self._lock:
            self._monitor = self._monitor or Monitor(self._archive)
        if body.browser:
            require_rendering(self._archive)
        private = self._archive.settings.fetch.private == "always"
        options = replace(CheckOptions(uid=body.uid), now=body.now, force=body.force, private_ok=private)
        options = replace(options, browser=body.browser)
        check = self._monitor.look([body.url], options)[0]
        if check.outcome is Outcome.REFUSED:
            raise Refused(f"{check.url} was not asked: {check.error}")
        return CheckShape.of(check)

    def close(self) -> None:
        """Ends its connections."""
        with self._lock:
            if self._monitor is not None:
                self._monitor.close()
                self._monitor = None


@router.post("/check", responses=answers(429, 502))
def check(request: Request, archive: TheArchive, principal: ThePrincipal, body: CheckBody) -> CheckShape:
    """Look at a page now. Private and loopback addresses are refused unless the owner allowed them."""
    charge(archive, principal, CHECKS)
    lookout: Lookout = request.app.state.lookout
    return lookout.check(body)
