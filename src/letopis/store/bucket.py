"""An S3-compatible bucket with few methods, and a bounded local cache of blocks of its objects.

Every cached block has a checksum: a torn or damaged file of the cache is not used but fetched again. Several processes
may share the folder.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from xxhash import xxh3_64_digest

from letopis.binary import make_private_folder
from letopis.config.settings import StoreSettings
from letopis.errors import Busy, MissingExtra, NotReady, SettingError

BLOCK_BYTES = 256 * 1024
"""Objects are fetched and kept in blocks of this size."""
_CHECK = 8
_PART = ".part"


class BlockCache:
    """Blocks by name, the least recently used are removed first. Usable from any thread."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._guard = threading.Lock()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._total = 0
        if limit:
            self._survey()

    def _survey(self) -> None:
        with suppress(OSError):
            make_private_folder(self._folder)
            found = [(entry.stat().st_mtime, entry.name, entry.stat().st_size) for entry in os.scandir(self._folder)]
            self._sizes.update((name, size) for _, name, size in sorted(found))
            self._total = sum(self._sizes.values())

    def get(self, name: str, fetch: Callable[[], bytes]) -> bytes:
        """The block, from the folder or from `fetch`."""
        if not self._limit:
            return fetch()
        data = self._read(name)
        if data is None:
            data = fetch()
            self._keep(name, data)
        return data

    def drop(self, prefix: str) -> None:
        """Removes the blocks of one object."""
        with self._guard:
            names = [name for name in self._sizes if name.startswith(prefix)]
        for name in names:
            self._remove(name)

    def _read(self, name: str) -> bytes | None:
        try:
            raw = (self._folder / name).read_bytes()
        except OSError:
            return None
        if len(raw) < _CHECK or xxh3_64_digest(raw[:-_CHECK]) != raw[-_CHECK:]:
            self._remove(name)
            return None
        with self._guard, suppress(KeyError):
            self._sizes.move_to_end(name)
        return raw[:-_CHECK]

    def _keep(self, name: str, data: bytes) -> None:
        """A cache that cannot be written is no failure."""
        part = self._folder / f"{name}.{uuid4().hex}{_PART}"
        try:
            part.write_bytes(data + xxh3_64_digest(data))
            part.rename(self._folder / name)
        except OSError:
            with suppress(OSError):
                part.unlink()
            return
        with self._guard:
            self._total += len(data) + _CHECK - self._sizes.pop(name, 0)
            self._sizes[name] = len(data) + _CHECK
            surplus = self._surplus()
        for old in surplus:
            with suppress(OSError):
                (self._folder / old).unlink()

    def _surplus(self) -> list[str]:
        gone: list[str] = []
        while self._total > self._limit and self._sizes:
            name, size = self._sizes.popitem(last=False)
            self._total -= size
            gone.append(name)
        return gone

    def _remove(self, name: str) -> None:
        with self._guard:
            self._total -= self._sizes.pop(name, 0)
        with suppress(OSError):
            (self._folder / name).unlink()


_TRIES = {"max_retries": 4, "retry_timeout": timedelta(seconds=8)}
_PATIENCE = timedelta(seconds=20)
UPLOAD_PART_BYTES = 8 << 20
"""Larger objects are uploaded in parts of this size."""


class Bucket:
    """Objects under one prefix. Usable from any thread.

    Every request is tried again for some seconds; after that it is NotReady.
    """

    def __init__(self, settings: StoreSettings) -> None:
        self.where = settings.url
        self._library = _obstore()
        name, prefix = _bucket_and_prefix(settings.url)
        options = {
            "prefix": prefix or None,
            "endpoint": settings.endpoint or None,
            "access_key_id": settings.access_key or None,
            "secret_access_key": settings.secret_key or None,
            "region": settings.region,
        }
        self._store: Any = self._library.store.S3Store(
            name,
            **{key: value for key, value in options.items() if value is not None},
            virtual_hosted_style_request=False if settings.endpoint else None,
            client_options={"allow_http": settings.endpoint.startswith("http://"), "timeout": _PATIENCE},
            retry_config=_TRIES,
        )

    def sizes(self, prefix: str = "", after: str = "") -> dict[str, int]:
        """Names and sizes of all objects whose path begins with a folder, or of all that come after a name."""
        with self._told("read"):
            parts = self._library.list(self._store, prefix or None, offset=after or None, chunk_size=1000)
            return {row["path"]: row["size"] for part in parts for row in part}

    def size(self, name: str) -> int:
        """The size of one object; FileNotFoundError when there is none."""
        with self._told("read"):
            return int(self._library.head(self._store, name)["size"])

    def span(self, name: str, start: int, end: int) -> bytes:
        """Bytes of an object; the range must begin inside it."""
        with self._told("read"):
            return bytes(self._library.get_range(self._store, name, start=start, end=end))

    def whole(self, name: str) -> bytes:
        """All bytes of a small object; FileNotFoundError when there is none."""
        with self._told("read"):
            return bytes(self._library.get(self._store, name).bytes())

    def create(self, name: str, data: bytes) -> None:
        """Stores a new object in one request; Busy when the name is taken by other bytes.

        A request whose answer was lost is sent again and then meets its own object: equal bytes are success.
        """
        try:
            with self._told("write to"):
                self._library.put(self._store, name, data, mode="create", use_multipart=False)
        except Busy:
            if self.whole(name) != data:
                raise

    def replace(self, name: str, data: bytes) -> None:
        """Stores or replaces an object; readers see either the whole old or the whole new one."""
        with self._told("write to"):
            self._library.put(self._store, name, data, use_multipart=False)

    def upload(self, name: str, file: Path) -> None:
        """Stores a large file in parts; the object appears whole when the last part has arrived."""
        with self._told("write to"):
            self._library.put(
                self._store, name, file, use_multipart=True, chunk_size=UPLOAD_PART_BYTES, max_concurrency=4
            )

    def delete(self, names: Sequence[str]) -> None:
        """Removes objects; missing ones are no error."""
        if names:
            with self._told("write to"), suppress(FileNotFoundError):
                self._library.delete(self._store, list(names))

    @contextmanager
    def _told(self, action: str) -> Iterator[None]:
        """Turns errors of the object store into messages; a missing object stays FileNotFoundError."""
        faults = self._library.exceptions
        try:
            yield
        except FileNotFoundError:
            raise
        except faults.AlreadyExistsError as error:
            raise Busy(f"somebody else writes to {self.where}; stop the other writer, then try again") from error
        except (faults.PermissionDeniedError, faults.UnauthenticatedError) as error:
            raise NotReady(
                f"{self.where} refused to {action} it; check store.access_key and store.secret_key"
            ) from error
        except faults.BaseError as error:
            reason = str(error).partition("\n")[0]
            raise NotReady(f"cannot {action} {self.where} ({reason}); check store.endpoint, then try again") from error


def _obstore() -> Any:
    try:
        import obstore  # noqa: PLC0415 - optional dependency
        import obstore.exceptions  # noqa: PLC0415
        import obstore.store  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("an object store needs 'pip install letopis[s3]'") from None
    return obstore


def _bucket_and_prefix(url: str) -> tuple[str, str]:
    """Bucket and prefix of an `s3://` address."""
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc:
        raise SettingError(f"store.url = {url!r} does not fit: write it as s3://bucket/prefix")
    return parts.netloc, parts.path.strip("/")
