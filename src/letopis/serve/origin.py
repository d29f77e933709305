"""Under which name a client reached us."""

from __future__ import annotations

import re

from starlette.types import Scope

_HOST = re.compile(r"[A-Za-z0-9.\-_:\[\]]{1,255}", re.ASCII)


def origin(scope: Scope) -> str:
    """Scheme and host under which the client reached us."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
    if not _HOST.fullmatch(host):
        address, port = scope.get("server") or ("localhost", 80)
        host = f"{address}:{port}"
    return f"{scope['scheme']}://{host}"
