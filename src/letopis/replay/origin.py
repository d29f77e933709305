"""The replay origin: host names of archived sites, one for each site and time, and their place. Pure.

`https://www.example.org/a?b` as it was at a time is `http://s<time>-www-example-org.letopis.localhost:8081/a?b`: path
and query stay as they were, so that whatever a page or its scripts ask for by a relative address is found without
anything being rewritten, and the browser itself keeps what sites store apart. Browsers lead names below `localhost` to
their own machine; elsewhere `serve.replay_origin` names a host, and a wildcard below it.
"""

from __future__ import annotations

import re
from functools import cache
from urllib.parse import urlsplit

from letopis.errors import SettingError
from letopis.tuples import NamedTuple

LOCAL_HOST = "letopis.localhost"
"""Under which archived sites are replayed on the reader's own machine."""
NO_ORIGIN = "none"
"""The value of `serve.replay_origin` that keeps scripts of archived pages off."""
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_TIME_DIGITS = 7
_MOST_LABEL = 63
_LABEL = re.compile(r"([sh])([0-9a-z]{7})-([a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)", re.ASCII)
_PORT = re.compile(r"(?<!-)---(\d{1,5})\Z", re.ASCII)
_WEB = re.compile(r"(?:(https?):)?//([^/?#\\]+)(?=[/?#]|\Z)", re.ASCII | re.IGNORECASE)
_SCHEMES = {"s": "https", "h": "http"}
_USUAL_PORTS = {"http": ":80", "https": ":443"}
_LOOPBACK = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|[a-z0-9.-]+\.localhost)(?::\d+)?", re.ASCII | re.I)


class ReplaySite(NamedTuple):
    """An archived site as it was at a time, in milliseconds; `host` has its port where it is not the usual one."""

    scheme: str
    host: str
    time: int

    @property
    def origin(self) -> str:
        """Where it was."""
        return f"{self.scheme}://{self.host}"

    @property
    def label(self) -> str | None:
        """Its name below the replay origin; None for a host that does not fit into one."""
        seconds = max(0, self.time // 1000)
        number = ""
        for _ in range(_TIME_DIGITS):
            seconds, digit = divmod(seconds, len(_DIGITS))
            number = _DIGITS[digit] + number
        name, _, port = self.host.partition(":")
        escaped = name.replace("-", "--").replace(".", "-") + (f"---{port}" if port else "")
        label = f"{self.scheme[4:] or 'h'}{number}-{escaped}"
        fits = len(label) <= _MOST_LABEL and not seconds and site_of_label(label) is not None
        return label if fits and _host_of(escaped) == self.host else None


def site_of_label(label: str) -> ReplaySite | None:
    """The site of a name; None for a name that is no replay host."""
    found = _LABEL.fullmatch(label)
    if found is None:
        return None
    return ReplaySite(_SCHEMES[found[1]], _host_of(found[3]), int(found[2], len(_DIGITS)) * 1000)


def _host_of(escaped: str) -> str:
    port = _PORT.search(escaped)
    name = escaped[: port.start()] if port else escaped
    plain = name.replace("--", "\0").replace("-", ".").replace("\0", "-")
    return f"{plain}:{port[1]}" if port else plain


class ReplayOrigin(NamedTuple):
    """Scheme and host under which archived sites live, such as `http://letopis.localhost:8081`."""

    scheme: str
    host: str

    @property
    def base(self) -> str:
        """Where the frame around archived pages lives; no archived byte is ever answered there."""
        return f"{self.scheme}://{self.host}"

    @property
    def sites(self) -> str:
        """All archived sites, as a source of a Content-Security-Policy."""
        return f"{self.scheme}://*.{self.host}"

    @property
    def domain(self) -> str:
        """The name without its port."""
        return self.host.partition(":")[0]

    def site_of(self, host: str) -> ReplaySite | None:
        """The site for the host of a request; None for the base and for names that are no replay hosts."""
        label, _, rest = host.lower().partition(".")
        return site_of_label(label) if rest == self.host else None

    def is_base(self, host: str) -> bool:
        """Whether the host of a request is that of the frame."""
        return host.lower() == self.host

    def address(self, url: str, time: int) -> str | None:
        """The place of a URL on the replay origin; None if its host does not fit into a name."""
        site = site_of_url(url, time)
        label = site.label if site is not None else None
        return f"{self.scheme}://{label}.{self.host}{_behind_host(url)}" if label else None

    def original(self, address: str) -> str | None:
        """The URL of which this one is the replay; None if it is no replay URL."""
        found = _WEB.match(address)
        site = self.site_of(found[2]) if found is not None else None
        return f"{site.origin}{_behind_host(address)}" if site is not None else None

    def restored(self, text: str) -> str:
        """A query or a body in which scripts wrote where their page is, as they wrote it then."""
        return _place_pattern(self.host).sub(_restored_place, text) if self.domain in text.lower() else text


@cache
def _place_pattern(host: str) -> re.Pattern[str]:
    """An archived site's address or host inside a text, as it is or percent-encoded."""
    name = re.escape(host).replace(":", "(?::|%3A)")
    return re.compile(rf"(?:https?(:|%3A)(//|%2F%2F))?([sh][0-9a-z]{{7}}-[a-z0-9_-]{{1,63}})\.{name}", re.ASCII | re.I)


def _restored_place(found: re.Match[str]) -> str:
    site = site_of_label(found[3].lower())
    if site is None:
        return found[0]
    colon = found[1] or ":"
    return (f"{site.scheme}{colon}{found[2]}" if found[1] else "") + site.host.replace(":", colon)


def site_of_url(url: str, time: int) -> ReplaySite | None:
    """The site at a time to which an absolute address of the web belongs; `//host` counts as https."""
    found = _WEB.match(url)
    if found is None:
        return None
    scheme = (found[1] or "https").lower()
    host = found[2].rpartition("@")[2].lower().removesuffix(_USUAL_PORTS[scheme])
    return ReplaySite(scheme, host.rstrip("."), time)


def _behind_host(url: str) -> str:
    found = _WEB.match(url)
    rest = url[found.end() :] if found is not None else ""
    return rest if rest.startswith("/") else f"/{rest}"


class ReplayDoor(NamedTuple):
    """How a service offers replay with scripts: by a setting, or on a separate port for the reader's machine."""

    setting: str = ""
    port: int | None = None

    def origin_for(self, host: str) -> ReplayOrigin | None:
        """The replay origin for readers who reached the service under a host; None if there is none for them."""
        if self.setting == NO_ORIGIN:
            return None
        if self.setting:
            return configured_origin(self.setting)
        return self.local if self.port is not None and _LOOPBACK.fullmatch(host) else None

    @property
    def local(self) -> ReplayOrigin:
        """The origin on the reader's own machine."""
        return ReplayOrigin("http", f"{LOCAL_HOST}:{self.port}")

    @property
    def served(self) -> ReplayOrigin | None:
        """The origin whose requests are answered."""
        return (
            self.local if not self.setting else None if self.setting == NO_ORIGIN else configured_origin(self.setting)
        )


def configured_origin(setting: str) -> ReplayOrigin:
    """What `serve.replay_origin` says; SettingError where it is no origin with a host name."""
    parts = urlsplit(setting if "://" in setting else f"https://{setting}")
    name = parts.hostname or ""
    if parts.scheme not in ("http", "https") or "." not in name or parts.path not in ("", "/") or name[-1].isdigit():
        raise SettingError(
            f"serve.replay_origin: '{setting}' is not an origin; write a host of its own such as https://replay.example.org"
            f", with a wildcard below it, or '{NO_ORIGIN}'"
        )
    return ReplayOrigin(parts.scheme, parts.netloc.lower())
