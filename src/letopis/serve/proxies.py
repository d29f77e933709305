"""Behind a reverse proxy: its word on who asked is taken only if the owner named it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from starlette.types import ASGIApp, Receive, Scope, Send

from letopis.errors import SettingError

Network = IPv4Network | IPv6Network


class Proxies:
    """Puts the client's address, scheme and host in place of the proxy's."""

    def __init__(self, app: ASGIApp, trusted: Sequence[str]) -> None:
        self._app = app
        self._trusted = [_network(text) for text in trusted]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and self._trusted and self._is_trusted((scope.get("client") or ("",))[0]):
            scope = self._behind(scope)
        await self._app(scope, receive, send)

    def _is_trusted(self, address: str) -> bool:
        try:
            found = ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._trusted)

    def _behind(self, scope: Scope) -> Scope:
        fields = {name: value.decode("latin-1") for name, value in scope["headers"]}
        scope = dict(scope)
        chain = [part.strip() for part in fields.get(b"x-forwarded-for", "").split(",") if part.strip()]
        # The last address that is not one of our own proxies is the client; what stands before it anyone can write.
        client = next((part for part in reversed(chain) if not self._is_trusted(part)), None)
        if client:
            scope["client"] = (client, 0)
        if fields.get(b"x-forwarded-proto") in ("http", "https"):
            scope["scheme"] = fields[b"x-forwarded-proto"]
        host = fields.get(b"x-forwarded-host")
        if host:
            kept = [(name, value) for name, value in scope["headers"] if name != b"host"]
            scope["headers"] = [*kept, (b"host", host.encode("latin-1"))]
        return scope


def _network(text: str) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise SettingError(f"serve.trusted_proxies: '{text}' is no address or network") from None
