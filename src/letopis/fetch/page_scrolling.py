"""How a page is scrolled through before it is kept, so that what loads only for readers is loaded.

Each window of it that is shown on the way is drawn, which takes as much as a tenth of a capture. A page of which no
document, script, style sheet or answer has a word for what could wait for readers is scrolled to its end at once.
"""

from __future__ import annotations

_MOST_READ = 256 * 1024
"""Of one text; a longer one may hold anything."""
_WAITS = (
    # What browsers load late, and what scripts that do so are told or name it.
    b"scroll", b"lazy", b"observer", b"content-visibility", b"animation-timeline",
    # Asks where it is.
    b"boundingclient", b"clientrects", b"offsettop", b"pageyoffset", b"frompoint", b"checkvisibility",
    # Looks again and again.
    b"interval", b"timeout", b"animationframe", b"idlecallback", b"messagechannel", b"postmessage", b"onmessage",
    # Texts within texts, and another coding of characters.
    b"\\x", b"\\u", b"eval", b"atob", b"fromcharcode", b"fromcodepoint", b"unescape", b"import(", b"script;base64",
    b"\0",
)  # fmt: skip
_MAKES_SCRIPTS = b"Function("
_SCROLL = """(async () => {
  const step = Math.max(200, innerHeight, %s), pause = () => new Promise(done => setTimeout(done, 50));
  for (let at = step, n = 0; at < document.documentElement.scrollHeight && n < 60; at += step, n++) {
    scrollTo(0, at); await pause();
  }
  scrollTo(0, 0);
})()"""
SCROLL = _SCROLL % 0
"""Window by window."""
JUMP = _SCROLL % "document.documentElement.scrollHeight - 1"
"""To the end at once."""


def may_wait_for_readers(text: bytes) -> bool:
    """Whether something in a text that a page has may load more when its place is scrolled to. Pure."""
    if len(text) > _MOST_READ or _MAKES_SCRIPTS in text:
        return True
    lowered = text.lower()
    return any(word in lowered for word in _WAITS)
