"""What the archive knows of a URL before it is asked again."""

from __future__ import annotations

from dataclasses import dataclass

from letopis.archive import Archive, Identity
from letopis.catalog.lookup import newest
from letopis.model import Headers, header
from letopis.urls import host as host_of

DIGESTS = frozenset({"content-md5", "digest", "repr-digest"})


@dataclass(frozen=True, slots=True)
class Known:
    """The newest version's validators and identity; empty for a URL without versions."""

    resource: int
    version: int
    number: int
    sha1: bytes
    raw_bytes: int
    headers: Headers
    final_url: str
    distrusted: frozenset[str] = frozenset()

    @property
    def etag(self) -> str:
        """For If-None-Match."""
        return header(self.headers, "etag")

    @property
    def last_modified(self) -> str:
        """For If-Modified-Since."""
        return header(self.headers, "last-modified")

    def unchanged_if(self) -> Headers:
        """Length and digest fields that prove an answer unchanged without a download."""
        fields = tuple(
            (name, value)
            for name, value in self.headers
            if name.lower() in DIGESTS and name.lower() not in self.distrusted
        )
        length = header(self.headers, "content-length")
        return (*fields, ("Content-Length", length)) if fields and length else ()

    def is_same(self, identity: Identity) -> bool:
        """Whether a body with this identity is the newest version again."""
        return identity.sha1 == self.sha1


def known_of(archive: Archive, url: str) -> Known | None:
    """None when there is no version to compare with."""
    found = newest(archive.catalog.database, url)
    if found is None:
        return None
    # A later answer with the same content may have brought newer validators.
    capture = archive.catalog.versions.last_capture(found.resource)
    head = found.head
    if capture is not None and capture.time > found.time and capture.status == 200 and capture.head is not None:
        head = capture.head
    headers = archive.catalog.heads.get(head)
    final = archive.answers.final_url(found.extra)
    doubts = archive.catalog.lessons.distrusted(host_of(url)) if _has_digest(headers) else frozenset()
    return Known(found.resource, found.id, found.number, found.sha1, found.raw_bytes, headers, final or url, doubts)


def _has_digest(headers: Headers) -> bool:
    return any(name.lower() in DIGESTS for name, _ in headers)
