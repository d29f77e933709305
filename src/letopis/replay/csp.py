"""What keeps archived pages from acting as ours.

Every archived byte is sent with a sandbox of its own: the page has no origin, so it can neither read our cookies nor
be trusted by our forms, and it may load nothing but other captures. Scripts run only if the owner allowed them, and
then inside the same sandbox.
"""

from __future__ import annotations

from letopis.model import Headers


def replay_policy(origin: str, *, scripts: bool) -> str:
    """The Content-Security-Policy of a page in the browsing view.

    It does not say who may show the page in a frame: an archived frameset is a sandbox without an origin that could be
    named, and nothing in a page that has no session can be clicked to anyone's harm.
    """
    web = f"{origin}/web/"
    inline = "'unsafe-inline'"
    code = f"script-src {web} {inline}; " if scripts else "script-src 'none'; "
    sandbox = "sandbox allow-popups" + (" allow-scripts" if scripts else "")
    return (
        f"{sandbox}; default-src 'none'; {code}img-src {web} data:; style-src {web} {inline}; font-src {web} data:; "
        f"media-src {web} data:; frame-src {web}; connect-src 'none'; form-action 'none'; base-uri 'none'; "
        "object-src 'none'"
    )


RAW_POLICY = (
    "sandbox; default-src 'none'; script-src 'none'; img-src data:; style-src 'unsafe-inline'; connect-src 'none'; "
    "form-action 'none'; base-uri 'none'; object-src 'none'; frame-ancestors 'self'"
)
"""For bytes that are sent as they are stored: they load nothing at all."""

SAFE_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
"""Further fields on everything archived."""


def original_headers(headers: Headers) -> list[tuple[str, str]]:
    """The stored fields under names that no browser acts on."""
    return [
        (f"X-Archive-Orig-{name}", _header_value(value))
        for name, value in headers
        if name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    ]


def safe_content_type(value: str) -> str:
    """A Content-Type that can be sent; what cannot is left to be plain bytes."""
    clean = _header_value(value)
    return clean if "/" in clean else "application/octet-stream"


def _header_value(value: str) -> str:
    text = "".join(char if char >= " " and char != "\x7f" else " " for char in value)
    return text.encode("latin-1", "replace").decode("latin-1").strip()
