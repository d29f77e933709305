"""Where alerts go: a web address, a file, or anything that apprise knows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from letopis.config import FetchSettings
from letopis.errors import MissingExtra, NotReady, Refused, UsageError
from letopis.fetch import Origin
from letopis.fetch.posting import post
from letopis.monitor.messages import Message


def accept(target: str, origin: Origin, private: str) -> str:
    """The target itself when it can be used; a sentence that says why not otherwise.

    Watches that came through HTTP may only call web addresses: files and
    the services behind apprise would reach what belongs to the owner alone.
    """
    scheme = urlsplit(target).scheme.lower()
    if scheme in ("http", "https"):
        return target
    if origin == "http" and private != "always":
        raise Refused(f"'{target}' can only be notified by watches of the owner; give an http:// or https:// address")
    if scheme == "file":
        _path(target)
    elif not scheme or not _apprise().add(target):
        raise UsageError(f"'{target}' is no target; write https://..., file:/path or an address of apprise")
    return target


def deliver(target: str, message: Message, settings: FetchSettings, *, guarded: bool) -> None:
    """Hands a message over; returns when the target has taken it. Blocks."""
    scheme = urlsplit(target).scheme.lower()
    if scheme in ("http", "https"):
        _to_web(target, message, settings, guarded)
    elif scheme == "file":
        _to_file(_path(target), message)
    else:
        _to_service(target, message)


def _to_web(target: str, message: Message, settings: FetchSettings, guarded: bool) -> None:
    headers = (("Content-Type", "application/json"), ("Idempotency-Key", message.key), ("User-Agent", "Letopis"))
    status = post(target, message.to_json().encode(), headers, settings, private_ok=not guarded)
    if not 200 <= status < 300:
        raise NotReady(f"{target} answered with status {status}; it is tried again later")


def _to_file(path: Path, message: Message) -> None:
    """One line a message, on disk when it returns. Short appends of several processes do not mix."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(message.to_json() + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise NotReady(f"cannot write {path}: {error.strerror}; it is tried again later") from None


def _path(target: str) -> Path:
    parts = urlsplit(target)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise UsageError(f"'{target}' names no file; write file:/path/alerts.jsonl")
    return Path(unquote(parts.path))


def _to_service(target: str, message: Message) -> None:
    service = _apprise()
    if not service.add(target) or not service.notify(title=message.title, body=message.body):
        raise NotReady(f"{urlsplit(target).scheme} did not take the message; it is tried again later")


def _apprise() -> Any:
    try:
        import apprise  # noqa: PLC0415 - optional dependency
    except ImportError:
        raise MissingExtra("this kind of notification needs 'pip install letopis[notify]'") from None
    return apprise.Apprise()
