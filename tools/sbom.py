"""The software bill of materials: what is installed here with Letopis, as CycloneDX 1.5 JSON; asks no network.

    python tools/sbom.py [-o letopis.cdx.json] [--extra NAME ...]

Made of the metadata of installed distributions: Letopis, what it requires, and what that requires in turn. The same
installation gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import uuid
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

_NAME = re.compile(r"[-_.]+")


def installed_closure(name: str, extras: set[str]) -> dict[str, tuple[Distribution, list[str]]]:
    """Distributions by their normal names, each with the names of those that it requires and that are installed."""
    found: dict[str, tuple[Distribution, list[str]]] = {}
    waiting = [(_normal(name), extras)]
    while waiting:
        key, wanted = waiting.pop()
        if key in found:
            continue
        here = distribution(key)
        needed = [one for one in map(Requirement, here.requires or []) if _applies(one, wanted)]
        present = {_normal(one.name): set(one.extras) for one in needed if _is_installed(one.name)}
        found[key] = here, sorted(present)
        waiting += present.items()
    return found


def _normal(name: str) -> str:
    return _NAME.sub("-", name).lower()


def _applies(needed: Requirement, extras: set[str]) -> bool:
    return needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *extras))


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def bill_of_materials(name: str, extras: set[str]) -> dict[str, Any]:
    """The document; its serial number follows from what it lists."""
    found = installed_closure(name, extras)
    parts = {key: _component(key, here) for key, (here, _) in sorted(found.items())}
    own = parts.pop(_normal(name))
    listed = json.dumps([own, *parts.values()], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, listed)}",
        "version": 1,
        "metadata": {"component": own | {"type": "application"}},
        "components": list(parts.values()),
        "dependencies": [
            {"ref": _purl(key, here), "dependsOn": [_purl(one, found[one][0]) for one in needed]}
            for key, (here, needed) in sorted(found.items())
        ],
    }


def _purl(key: str, here: Distribution) -> str:
    return f"pkg:pypi/{key}@{here.version}"


def _component(key: str, here: Distribution) -> dict[str, Any]:
    told = here.metadata
    licence = told.get("License-Expression") or (told.get("License") or "").partition("\n")[0]
    purl = _purl(key, here)
    made = {"type": "library", "bom-ref": purl, "name": told["Name"], "version": here.version, "purl": purl}
    return made | ({"licenses": [{"license": {"name": licence}}]} if licence else {})


def main() -> int:
    """Writes the document to a file or to standard output."""
    parser = argparse.ArgumentParser(description="List what is installed with Letopis as CycloneDX.")
    parser.add_argument("-o", "--output", type=Path, help="file; default: standard output")
    parser.add_argument("--extra", action="append", default=[], help="an extra of Letopis that is installed too")
    asked = parser.parse_args()
    text = json.dumps(bill_of_materials("letopis", set(asked.extra)), indent=1) + "\n"
    if asked.output:
        asked.output.write_text(text)
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
