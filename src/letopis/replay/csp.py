"""What keeps archived pages from acting as pages of Letopis.

Every archived byte is sent with a sandbox: it runs no scripts, opens no windows, sends no forms, leads nobody away, and
may load nothing but other captures. No policy keeps scripts from opening connections beside the web (WebRTC), so none
run on the origin that people sign in to. Where everybody may read, a page has no origin either. Where reading takes an
account it keeps ours, so that the reader's cookie goes along with its pictures and no address has to be a right.
"""

from __future__ import annotations

from starlette.types import Scope

from letopis.archive import Archive
from letopis.model import Headers
from letopis.replay.origin import ReplayOrigin

_KEEP_ORIGIN = "allow-same-origin"


def sandbox_flags(archive: Archive) -> str:
    """What archived pages may do, for the attribute `sandbox` of their frame and the directive of that name."""
    return "" if archive.settings.serve.public else _KEEP_ORIGIN


def replay_policy(origin: str, flags: str) -> str:
    """The Content-Security-Policy of a page in the browsing view.

    Of a page without an origin it does not say who may show it in a frame: an archived frameset has no origin that
    could be named, and nothing in a page that has no session can be clicked to anyone's harm.
    """
    ancestors = f"; frame-ancestors {origin}" if flags == _KEEP_ORIGIN else ""
    web = f"{origin}/web/"
    return (
        f"{f'sandbox {flags}'.strip()}; default-src 'none'; script-src 'none'; img-src {web} data:; "
        f"style-src {web} 'unsafe-inline'; font-src {web} data:; media-src {web} data:; frame-src {web}; "
        f"connect-src 'none'; form-action 'none'; base-uri 'none'; object-src 'none'{ancestors}"
    )


SITE_SANDBOX = "allow-scripts allow-same-origin allow-forms"
"""What archived pages may do on the replay origin: no windows, no dialogs, no downloads, and the frame stays."""


def site_policy(origin: ReplayOrigin) -> str:
    """The Content-Security-Policy of everything on the replay origin: only archived sites can be reached.

    Frames without a URL inherit it, so scripts cannot avoid it with new frames.
    """
    sites = f"{origin.sites} data: blob:"
    return (
        f"sandbox {SITE_SANDBOX}; default-src {sites} 'unsafe-inline' 'unsafe-eval'; connect-src {sites}; "
        f"form-action {origin.sites}; base-uri {origin.sites}; frame-ancestors {origin.base} {origin.sites}"
    )


def connection_policy(origin: ReplayOrigin) -> str:
    """The Connection-Allowlist in addition, for what no Content-Security-Policy governs, such as WebRTC.

    Redirects are judged by the other policy; here they could only be refused altogether. Not every browser knows it.
    """
    return f'("{origin.sites}");redirects=allow'


def allowed_origin(archive: Archive, scope: Scope) -> str:
    """The origin of the requester if the setting lets its pages read archived content; empty otherwise."""
    allowed = archive.settings.serve.cors
    fields = dict(scope["headers"])
    # Pages without an origin load their fonts as pages of another one would; no script can read what came as a font.
    if "*" in allowed or fields.get(b"sec-fetch-dest") == b"font":
        return "*"
    asking = fields.get(b"origin", b"").decode("latin-1")
    return asking if asking in allowed else ""


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
        (f"X-Archive-Orig-{name}", header_value(value))
        for name, value in headers
        if name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    ]


def safe_content_type(value: str) -> str:
    """A Content-Type that can be sent; what cannot is left to be plain bytes."""
    clean = header_value(value)
    return clean if "/" in clean else "application/octet-stream"


def header_value(value: str) -> str:
    """A stored value that can be sent; nearly all can as they are."""
    if value.isascii() and value.isprintable():
        return value.strip()
    text = "".join(char if char >= " " and char != "\x7f" else " " for char in value)
    return text.encode("latin-1", "replace").decode("latin-1").strip()
