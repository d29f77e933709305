"""Lists in YAML, read as plain values: nothing is made of them, and nothing is multiplied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from letopis.errors import UsageError


class _Plain(yaml.SafeLoader):  # type: ignore[misc]
    """Without merged mappings, which a few lines can multiply into gigabytes."""

    def flatten_mapping(self, node: Any) -> None:
        """Refuses `<<`."""
        if any(key.value == "<<" for key, _ in node.value):
            raise yaml.constructor.ConstructorError(None, None, "mappings merged by << are not read", node.start_mark)


def documents(file: Path) -> list[Any]:
    """All documents of a file; UsageError when it is no YAML."""
    try:
        with file.open("rb") as stream:
            return list(yaml.load_all(stream, Loader=_Plain))
    except (yaml.YAMLError, RecursionError, ValueError, OSError) as error:
        raise UsageError(f"{file} is no list of jobs ({' '.join(str(error).split())}); mend it") from None
