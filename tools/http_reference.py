"""Writes docs/reference/http.md from the OpenAPI document; a test fails when it is out of date."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from letopis.api.access import required_permission
from letopis.api.app import create_app
from letopis.archive import Archive

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "http.md"
_NEEDS = {0: "nobody", 1: "read", 2: "write", 4: "owner"}


def text() -> str:
    """One chapter a topic, one entry a route."""
    with tempfile.TemporaryDirectory() as folder, Archive(folder) as archive:
        document = create_app(archive).openapi()
    topics: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            topics.setdefault((operation.get("tags") or ["other"])[0], []).append(_entry(path, method, operation))
    parts = [
        "# HTTP\n\nMade from the OpenAPI document by `tools/http_reference.py`. *Needs* is the permission: `read` is\n"
        "open to all unless `serve.public = false`, `write` takes a user or a token of scope write, `owner` an owner.\n"
    ]
    for topic, entries in topics.items():
        parts.append(f"## {topic}\n\n" + "\n".join(entries))
    return "\n".join(parts)


def _entry(path: str, method: str, operation: dict[str, Any]) -> str:
    said = (operation.get("description") or operation.get("summary") or "").split("\n")[0]
    lines = [
        f"### `{method.upper()} {path}`\n",
        f"{said} Needs: {_NEEDS[required_permission(method.upper(), path)]}.\n",
    ]
    rows = [_parameter(parameter) for parameter in operation.get("parameters", [])]
    if rows:
        lines += ["| parameter | in | required | meaning |", "| --- | --- | --- | --- |", *rows, ""]
    body = operation.get("requestBody")
    if body:
        lines.append(f"Body: {', '.join(f'`{kind}`' for kind in body['content'])}.\n")
    return "\n".join(lines)


def _parameter(parameter: dict[str, Any]) -> str:
    required = "yes" if parameter.get("required") else ""
    meaning = parameter.get("description", "").replace("|", "\\|")
    return f"| `{parameter['name']}` | {parameter['in']} | {required} | {meaning} |"


def main(argv: list[str]) -> int:
    """Writes the page; with --check only says whether it is out of date."""
    made = text()
    if "--check" in argv:
        return int(not TARGET.exists() or TARGET.read_text() != made)
    TARGET.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
