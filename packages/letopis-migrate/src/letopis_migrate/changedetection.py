"""Data folders of changedetection.io: snapshots of every watch, and the watches themselves.

It keeps the text of each version, and the page itself of the last ones; the page is taken where it is there. Older
releases keep all watches in `url-watches.json`, newer ones each in its own `watch.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from letopis.archive.outside_values import parse_json
from letopis.errors import DocumentTooLarge, UsageError
from letopis.exchange.body_codings import undo_coding
from letopis.exchange.sources import MOST_WATCHES, ImportedCapture, ImportedWatch, ImportReport
from letopis_migrate.folders import SourceFolder, content_type_header, iso_time, sniffed_type

_OLD, _NEW = "url-watches.json", "changedetection.json"
_MOST_JSON = 64 * 1024 * 1024
_SECONDS = {"weeks": 604800, "days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
_JQ = ("jq:", "jqraw:")
_SOURCE = "source:"
_CHOOSING = ("css", "xpath", "jsonpath")
_ORDER = ("remove", *_CHOOSING, "price", "stock", "exclude")
_LEFT_OUT = (
    "trigger_text", "text_should_not_be_present", "extract_text", "browser_steps", "conditions", "headers", "body",
    "proxy", "restock_settings", "webdriver_js_execute_code", "sort_text_alphabetically", "check_unique_lines",
)  # fmt: skip
_AS_EVER = {"method": "GET", "fetch_backend": "html_requests", "processor": "text_json_diff"}
"""Fields of which anything but this, and what a release has for it by default, has no counterpart."""
_RESTOCK = "restock_diff"
_DEFAULT = ("", "system", "None")
_ADDED_LINES = ("filter_text_added", "filter_text_replaced", "filter_text_removed")


def is_changedetection(folder: Path) -> bool:
    """Whether a folder holds the files of changedetection.io."""
    return any((folder / name).is_file() for name in (_OLD, _NEW))


def changedetection_captures(root: Path, report: ImportReport) -> Iterator[ImportedCapture]:
    """All snapshots of all watches, each in the order of its history."""
    folder = SourceFolder(root, report)
    for name, watch in _watches(folder).items():
        for line in _history(folder, name):
            capture = _snapshot(folder, name, line, _address(watch), report)
            if capture is not None:
                yield capture


def _history(folder: SourceFolder, name: str) -> Iterator[tuple[str, str]]:
    """Time and file of each snapshot; files are looked for in the watch's own folder only."""
    path = f"{name}/history.txt"
    text = folder.read(path, _MOST_JSON) if folder.has(path) else b""
    for line in (text or b"").decode("utf-8", "replace").splitlines():
        time, comma, file = line.strip().partition(",")
        if comma:
            yield time, file.strip().replace("\\", "/").rpartition("/")[2]


def _snapshot(
    folder: SourceFolder, name: str, line: tuple[str, str], url: str, report: ImportReport
) -> ImportedCapture | None:
    time, file = line
    where = f"{name}/{file}"
    try:
        date = iso_time(float(time))
    except ValueError:
        report.refuse("no time that can be read", where)
        return None
    page = _unpacked(folder, f"{name}/{time}.html", report)
    if page is not None:
        return ImportedCapture(url, date, 200, (("Content-Type", "text/html; charset=utf-8"),), page, decoded=True)
    plain = file.removesuffix(".br")
    body = _unpacked(folder, f"{name}/{plain}", report)
    if body is None:
        report.refuse("its snapshot is not there or cannot be read", where)
        return None
    return ImportedCapture(url, date, 200, _headers(plain, body), body, decoded=True)


def _headers(file: str, body: bytes) -> tuple[tuple[str, str], ...]:
    if file.endswith(".txt"):
        return (("Content-Type", f"{sniffed_type(body)}; charset=utf-8"),)
    return content_type_header(file, body)


def _unpacked(folder: SourceFolder, path: str, report: ImportReport) -> bytes | None:
    """A file, or the one that brotli made of it."""
    if folder.has(path):
        return folder.read(path)
    packed = folder.read(f"{path}.br") if folder.has(f"{path}.br") else None
    if packed is None:
        return None
    try:
        return undo_coding("br", packed)
    except (DocumentTooLarge, ValueError) as error:
        report.refuse(f"cannot be unpacked ({error})", f"{path}.br")
        return None


def changedetection_watches(root: Path) -> Iterator[ImportedWatch]:
    """All watches, with their intervals, filters, tags and without targets of messages."""
    folder = SourceFolder(root, ImportReport())
    tags, settings = _tags(folder), _settings(folder)
    application, requests = (_object(settings.get(name)) for name in ("application", "requests"))
    # What is set for all watches, by the names that a single one has for it.
    common = {name: application.get(f"global_{name}") for name in ("subtractive_selectors", "ignore_text")}
    for watch in _watches(folder).values():
        ids = watch.get("tags") or []
        groups = [tags[one] for one in ids if one in tags]
        tag = next((str(group.get("title") or "") for group in groups), str(watch.get("tag") or ""))
        filters, other_kinds = _of_one_kind(one for row in (watch, *groups, common) for one in _filters(row))
        yield ImportedWatch(
            _address(watch), _every(watch, requests), filters, tag, bool(watch.get("paused")),
            (*_left_out(watch), *other_kinds),
        )  # fmt: skip


def _of_one_kind(filters: Iterable[tuple[str, str]]) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """Filters in the order in which they act, and those that cannot choose beside others: a chain of them is empty."""
    found = list(dict.fromkeys(filters))
    kind = next((kind for kind, _ in found if kind in _CHOOSING), "")
    kept = [one for one in found if one[0] not in _CHOOSING or one[0] == kind]
    rest = [f"filter {kind}:{text}" for kind, text in found if (kind, text) not in kept]
    return tuple(sorted(kept, key=lambda one: _ORDER.index(one[0]))), rest


def _left_out(watch: dict[str, Any]) -> Iterator[str]:
    """What of a watch is not taken over: it would look at less, or at another thing, without a word."""
    yield from (name for name in _LEFT_OUT if watch.get(name))
    for name, usual in _AS_EVER.items():
        if (said := str(watch.get(name) or "")) not in (*_DEFAULT, usual, _RESTOCK):
            yield f"{name} '{said}'"
    if not all(watch.get(name, True) for name in _ADDED_LINES):
        yield "choice of added, replaced or removed lines"
    if _object(watch.get("time_schedule_limit")).get("enabled"):
        yield "time_schedule_limit"
    url = str(watch.get("url") or "")
    if "{{" in url or "{%" in url:
        yield "template in the address"
    if url.startswith(_SOURCE):
        yield "comparison of the source instead of the text"
    yield from (text for text in _texts(watch.get("include_filters")) if text.startswith(_JQ))


def _address(watch: dict[str, Any]) -> str:
    return str(watch.get("url") or "").removeprefix(_SOURCE)


def _every(watch: dict[str, Any], requests: dict[str, Any]) -> float | None:
    """The interval of a watch, else that of all."""
    own = {} if watch.get("time_between_check_use_default") else _object(watch.get("time_between_check"))
    return _seconds_of(own) or _seconds_of(_object(requests.get("time_between_check")))


def _seconds_of(interval: dict[str, Any]) -> float | None:
    return sum(_number(interval.get(name)) * seconds for name, seconds in _SECONDS.items()) or None


def _number(value: Any) -> float:
    try:
        number = float(value or 0)
    except (TypeError, ValueError):
        return 0.0
    return number if 0 < number < 1e6 else 0.0


def _filters(watch: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if watch.get("processor") == _RESTOCK:
        yield from (("price", "html"), ("stock", "html"))
    for text in _texts(watch.get("include_filters")):
        if text.startswith(("/", "xpath:", "xpath1:")):
            yield "xpath", text.removeprefix("xpath:").removeprefix("xpath1:")
        elif text.startswith("json:"):
            yield "jsonpath", text.removeprefix("json:")
        elif not text.startswith(_JQ):
            yield "css", text
    for text in _texts(watch.get("subtractive_selectors")):
        yield "remove", text
    for text in _texts(watch.get("ignore_text")):
        yield "exclude", _line_pattern(text)


def _line_pattern(text: str) -> str:
    """A pattern for lines that are ignored: `/a/i`, or a text in any case."""
    body = text.rstrip("imsx")
    if len(body) < 3 or not body.startswith("/") or not body.endswith("/"):
        return f"(?i){_escaped(text)}"
    flags = "".join(sorted(set(text[len(body) :])))
    return f"(?{flags}){body[1:-1]}" if flags else body[1:-1]


def _escaped(text: str) -> str:
    return "".join("\\" + sign if sign in r".^$*+?{}[]\|()" else sign for sign in text)


def _texts(value: Any) -> list[str]:
    return [str(text).strip() for text in value[:1000] if str(text).strip()] if isinstance(value, list) else []


def _watches(folder: SourceFolder) -> dict[str, dict[str, Any]]:
    """Watches by the name of their folder."""
    old = _json(folder, _OLD).get("watching") if folder.has(_OLD) else None
    found = {str(name): watch for name, watch in (old or {}).items()} if isinstance(old, dict) else {}
    for name in _folders(folder):
        if folder.has(f"{name}/watch.json"):
            found[name] = _json(folder, f"{name}/watch.json")
    kept = {name: watch for name, watch in found.items() if isinstance(watch, dict) and _is_name(name)}
    return dict(list(kept.items())[:MOST_WATCHES])


def _is_name(name: str) -> bool:
    return bool(name) and not name.startswith(".") and "/" not in name and "\x00" not in name


def _folders(folder: SourceFolder) -> list[str]:
    return sorted(entry.name for entry in folder.root.iterdir() if entry.is_dir() and not entry.is_symlink())


def _settings(folder: SourceFolder) -> dict[str, Any]:
    return _object(_json(folder, _NEW if folder.has(_NEW) else _OLD).get("settings"))


def _tags(folder: SourceFolder) -> dict[str, dict[str, Any]]:
    """Tags by their ids; they have names, and filters for all of their watches."""
    rows = dict(_object(_object(_settings(folder).get("application")).get("tags")))
    rows |= {name: _json(folder, f"{name}/tag.json") for name in _folders(folder) if folder.has(f"{name}/tag.json")}
    return {str(name): row for name, row in rows.items() if isinstance(row, dict)}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(folder: SourceFolder, path: str) -> dict[str, Any]:
    try:
        found = parse_json(folder.read(path, _MOST_JSON) or b"{}")
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{folder.root / path} is not valid JSON ({error}); correct it") from None
    return found if isinstance(found, dict) else {}
