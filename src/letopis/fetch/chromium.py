"""Chromium without a window, for pages of the web and of archives.

It is started with nowhere to go: whatever a page asks for is answered by our own client.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from letopis.errors import Unavailable
from letopis.fetch.devtools import Devtools, DevtoolsError, DevtoolsSession

if TYPE_CHECKING:
    from letopis.fetch.browser_tab import BrowserTab

_PATIENCE_SECONDS = 5.0
_NOWHERE = "MAP * ~NOTFOUND"
_FLAGS = (
    "--headless", "--no-startup-window", "--block-new-web-contents", "--hide-scrollbars", "--mute-audio",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"
    ",mainFrameClipsContent=false",
    "--force-color-profile=srgb", "--enable-features=CDPScreenshotNewSurface,NetworkServiceInProcess2",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--disable-gpu", "--disable-quic",
    "--disable-checker-imaging", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-back-forward-cache", "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows", "--disable-breakpad",
    "--disable-component-extensions-with-background-pages", "--disable-default-apps", "--disable-dev-shm-usage",
    "--disable-extensions", "--disable-field-trial-config", "--disable-hang-monitor",
    "--disable-ipc-flooding-protection", "--disable-prompt-on-repost", "--disable-renderer-backgrounding",
    "--disable-search-engine-choice-screen", "--enable-unsafe-swiftshader", "--metrics-recording-only",
    "--no-default-browser-check", "--no-service-autorun", "--password-store=basic", "--use-mock-keychain",
    "--js-flags=--max-old-space-size=512",
)  # fmt: skip
"""With `_NOWHERE` no name and no address leads anywhere from inside the browser; it asks for nothing of its own.

The two names of the rule about WebRTC are those of Chromium and of the one without a window, which knows no other.
Nothing comes from the network, so it has no process of its own. No picture of a page is taken before the images in it
are decoded. Pages are painted beyond their window, so that a picture of the whole page needs no other window, for
which Chromium would lay out the page twice and tell it so.
"""
_WITHOUT = (
    # The suggestions below an invisible address bar are separate pages, more expensive than most pages of the web.
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup",
    # A process that waits for a next site; a page here is thrown away with all of its processes.
    "SpareRendererForSitePerProcess",
    # What would change pages, delay them, or send requests.
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect", "TcpPortRandomizationWin", "OptimizationHints",
    "NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch",
)  # fmt: skip
"""Features of Chromium that cost processor time and show nothing."""


HOLD_NEW_TARGETS = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
"""Frames, workers and windows wait until what they ask for is led to us."""


class Chromium:
    """One running browser without a window and with a profile that is thrown away."""

    def __init__(self, devtools: Devtools) -> None:
        self.devtools = devtools
        self.tabs: dict[str, BrowserTab] = {}
        """By the profile that each has for itself."""
        devtools.browser.on("Target.attachedToTarget", self._attached)

    @classmethod
    async def start(cls, executable: str, host: str = "") -> Chromium:
        """A new one, or Unavailable. Only `host` and names below it lead anywhere: to this machine."""
        # Root has no sandbox to go into; everybody else has.
        sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
        without = f"--disable-features={','.join(_WITHOUT)}"
        try:
            devtools = await Devtools.start([executable, *_FLAGS, *sandbox, without, _resolver(host)])
        except DevtoolsError as error:
            raise Unavailable(f"{executable} did not start: {error}") from None
        found = cls(devtools)
        devtools.browser.post("Target.setAutoAttach", HOLD_NEW_TARGETS)
        return found

    async def answers(self) -> bool:
        """Whether it still listens, which only a request shows."""
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self.devtools.browser.send("Browser.getVersion")
        except (DevtoolsError, TimeoutError):
            return False
        return True

    async def close(self) -> None:
        """Ends it with everything in it."""
        await self.devtools.close()

    def _attached(self, event: dict[str, Any]) -> None:
        """A window or a worker of many pages begins: of one of the tabs, or of none."""
        target = event["targetInfo"]
        tab = self.tabs.get(target.get("browserContextId", ""))
        session = self.devtools.session(event["sessionId"])
        if tab is not None:
            tab.enter(session, target)
        else:
            close_target(self.devtools.browser, target)


def close_target(browser: DevtoolsSession, target: dict[str, Any]) -> None:
    """Ends a window or a worker that is not wanted."""
    browser.post("Target.closeTarget", {"targetId": target["targetId"]})


def _resolver(host: str) -> str:
    known = f"MAP {host} 127.0.0.1, MAP *.{host} 127.0.0.1, " if host else ""
    return f"--host-resolver-rules={known}{_NOWHERE}"
