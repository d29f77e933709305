"""Chromium driven by playwright. Needs the extra `browser`.

It is started with nowhere to go: whatever a page asks for is answered by our own client.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any

from playwright.async_api import Browser, Playwright, async_playwright

from letopis.errors import Unavailable

_PATIENCE_SECONDS = 5.0
_LOST = "Connection closed while reading from the driver"
_NOWHERE = "MAP * ~NOTFOUND"
_FLAGS = (
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-gpu",
    "--disable-quic",
    "--disable-checker-imaging",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--max-old-space-size=512",
)
"""With `_NOWHERE` no name and no address leads anywhere from inside the browser; it asks for nothing of its own.

The two names of the rule about WebRTC are those of Chromium and of the one without a window, which knows no other.
No picture of a page is taken before the images in it are decoded.
"""
_WITHOUT = (
    # The suggestions below an address bar that nobody sees are pages of their own, dearer than most pages of the web.
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup",
    # A process that waits for a next site; a page here is thrown away with all of its processes.
    "SpareRendererForSitePerProcess",
    # What playwright switches off for itself, which a list of ours replaces.
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect", "TcpPortRandomizationWin", "OptimizationHints",
    "NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch",
)  # fmt: skip
"""Features of Chromium that cost processor time and show nothing."""


class Chromium:
    """One running browser without a window and with a profile that is thrown away."""

    def __init__(self, playwright: Playwright, browser: Browser) -> None:
        self._playwright = playwright
        self.browser = browser

    @classmethod
    async def start(cls, executable: str, host: str = "") -> Chromium:
        """A new one, or Unavailable. Only `host` and names below it lead anywhere: to this machine."""
        _silence_lost_driver(asyncio.get_running_loop())
        playwright: Playwright | None = None
        try:
            playwright = await async_playwright().start()
            # Root has no sandbox to go into; everybody else has.
            browser = await playwright.chromium.launch(
                executable_path=executable,
                args=[*_FLAGS, f"--disable-features={','.join(_WITHOUT)}", _resolver(host)],
                chromium_sandbox=os.geteuid() != 0,
            )
        except BaseException as error:
            if playwright is not None:
                await _stopped(playwright)
            if isinstance(error, Exception):  # a driver that is gone raises nothing more special
                raise Unavailable(f"{executable} did not start: {str(error).splitlines()[0]}") from None
            raise
        return cls(playwright, browser)

    async def answers(self) -> bool:
        """Whether it still listens, which only a question tells."""
        try:
            context = await asyncio.wait_for(self.browser.new_context(), _PATIENCE_SECONDS)
            await context.close()
        except Exception:  # as above
            return False
        return True

    async def close(self) -> None:
        """Ends it. One that no longer listens has lost its line to us and ends by itself."""
        with contextlib.suppress(Exception):  # as above
            await asyncio.wait_for(self.browser.close(), _PATIENCE_SECONDS)
        await _stopped(self._playwright)


def _resolver(host: str) -> str:
    known = f"MAP {host} 127.0.0.1, MAP *.{host} 127.0.0.1, " if host else ""
    return f"--host-resolver-rules={known}{_NOWHERE}"


async def _stopped(playwright: Playwright) -> None:
    with contextlib.suppress(Exception):  # as above
        await asyncio.wait_for(playwright.stop(), _PATIENCE_SECONDS)


def _silence_lost_driver(loop: asyncio.AbstractEventLoop) -> None:
    """A driver that ends before we end it, as at Ctrl-C, leaves a future behind that nobody asks."""
    before = loop.get_exception_handler() or asyncio.AbstractEventLoop.default_exception_handler

    def unless_the_driver(loop: asyncio.AbstractEventLoop, what: dict[str, Any]) -> None:
        if _LOST not in str(what.get("exception")):
            before(loop, what)

    loop.set_exception_handler(unless_the_driver)
