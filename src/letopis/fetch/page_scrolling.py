"""How a page is scrolled through before it is kept, so that what loads only for readers is loaded.

Each window of it that is shown on the way is drawn, which takes as much as a tenth of a capture. A page of which no
document, script, style sheet or answer has a word for what could wait for readers is scrolled to its end at once.
"""

from __future__ import annotations

import re

_MOST_READ = 256 * 1024
"""Of one text; a longer one may hold anything."""
_WAITS = (
    # What browsers load late, and what scripts that do so are told or name it.
    b"scroll", b"lazy", b"observer", b"content-visibility", b"animation-timeline",
    # Parts of a page that are not found from its document.
    b"attachshadow", b"shadowroot", b"srcdoc", b"contentdocument", b"contentwindow",
    # Asks where it is.
    b"boundingclient", b"clientrects", b"offsettop", b"pageyoffset", b"frompoint", b"checkvisibility",
    # Looks again and again.
    b"interval", b"timeout", b"animationframe", b"idlecallback", b"messagechannel", b"postmessage", b"onmessage",
    # Texts within texts, and another coding of characters.
    b"\\x", b"\\u", b"eval", b"atob", b"fromcharcode", b"fromcodepoint", b"unescape", b"import(", b"script;base64",
    b"\0",
)  # fmt: skip
_MAKES_SCRIPTS = b"Function("
_LOADS_LATE = re.compile(rb"loading\s*=\s*[\"']?lazy(?![\w-])", re.IGNORECASE)
_SIZED_LATE = re.compile(rb"sizes\s*=\s*[\"']?\s*auto", re.IGNORECASE)
"""Only while it loads late, a picture is chosen by the size that it has on the page."""
_SCROLL = """(async () => {
  const step = Math.max(200, innerHeight, %s), pause = () => new Promise(done => setTimeout(done, 50));
  for (let at = step, n = 0; at < document.documentElement.scrollHeight && n < 60; at += step, n++) {
    scrollTo(0, at); await pause();
  }
  scrollTo(0, 0);
})()"""
_LOAD_LATE_PARTS = """for (const one of document.querySelectorAll("[loading=lazy i]")) {
  if (!one.checkVisibility()) continue;
  const said = one.getAttribute("loading");
  one.loading = "eager";
  one.setAttribute("loading", said);
}"""
"""What Chromium loads late by itself begins to load, and says afterwards what it said before."""
SCROLL = _SCROLL % 0
"""Window by window."""
JUMP = _LOAD_LATE_PARTS + _SCROLL % "document.documentElement.scrollHeight - 1"
"""To the end at once."""


def page_may_wait_for_readers(page: bytes) -> bool:
    """The same as `may_wait_for_readers` of a page itself; what `JUMP` tells to load does not wait. Pure."""
    if len(page) > _MOST_READ or _SIZED_LATE.search(page):
        return True
    return may_wait_for_readers(_LOADS_LATE.sub(b" ", page))


def may_wait_for_readers(text: bytes) -> bool:
    """Whether something in a text that a page has may load more when its place is scrolled to. Pure."""
    if len(text) > _MOST_READ or _MAKES_SCRIPTS in text:
        return True
    lowered = text.lower()
    return any(word in lowered for word in _WAITS)
