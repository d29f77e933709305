"""What an alert says to people and to programs. Pure."""

from __future__ import annotations

import json
from string import Template
from typing import Any, NamedTuple

from letopis.catalog.watches import AlertRow
from letopis.config import MonitorSettings
from letopis.model import from_millis, rfc3339


class Message(NamedTuple):
    """One alert for one target. `key` is the same at every try, so that receivers can drop a repeat."""

    key: str
    title: str
    body: str
    facts: dict[str, Any]

    def to_json(self) -> str:
        """One object on one line."""
        return json.dumps({"id": self.key, "title": self.title, "message": self.body, **self.facts}, ensure_ascii=False)


def message_of(alert: AlertRow, settings: MonitorSettings) -> Message:
    """The templates `monitor.title` and `monitor.message` filled in; unknown names in them stay as they are."""
    stored: dict[str, Any] = json.loads(alert.facts)
    facts = {
        "kind": alert.kind,
        "url": alert.url,
        "time": rfc3339(from_millis(alert.time)),
        "tag": stored.get("tag", ""),
        "version": stored.get("version"),
        "sentence": alert.message,
        "difference": stored.get("difference", ""),
    }
    words = {name: "" if value is None else str(value) for name, value in facts.items()}
    title = Template(settings.title).safe_substitute(words).strip()
    body = Template(settings.message).safe_substitute(words).strip()
    return Message(f"letopis-alert-{alert.id}", title, body, facts)
