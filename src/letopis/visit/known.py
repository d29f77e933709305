"""What the archive knows of a URL before it is asked again."""

from __future__ import annotations

from dataclasses import dataclass

from letopis.archive import Archive, Identity
from letopis.catalog.lookup import newest
from letopis.model import Headers, header

_DIGESTS = ("content-md5", "digest", "repr-digest")


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
        fields = tuple((name, value) for name, value in self.headers if name.lower() in _DIGESTS)
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
    return Known(found.resource, found.id, found.number, found.sha1, found.raw_bytes, headers, final or url)
