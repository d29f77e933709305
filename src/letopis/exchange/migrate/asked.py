"""What the person who imports says about a source that does not say it itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from letopis.errors import UsageError


@dataclass(frozen=True, slots=True)
class Asked:
    """`url` is the page, or with a slash at its end the folder, that files belong to.

    `urls` is a list of addresses (`urls.tsv`, `urls.yaml`), `paths` the part of
    a git repository that counts.
    """

    url: str = ""
    urls: Path | None = None
    paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.url and not self.url.startswith(("http://", "https://")):
            raise UsageError(f"--url {self.url} is no web address; begin it with https:// or http://")
