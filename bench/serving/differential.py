"""pywb as an oracle: generated questions to both servers, and where their answers differ."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import timedelta
from urllib.parse import urlencode

from bench.serving.captures import START, Scene
from bench.serving.servers import Served, both, stamp_at

FIELDS = ("urlkey", "timestamp", "url", "mime", "status", "digest")


def cdx_question(chance: random.Random, urls: tuple[str, ...]) -> dict[str, str | list[str]]:
    """A question in pywb's dialect."""
    url = chance.choice(urls)
    host = url.split("/")[2]
    # Their guesses for pages they have not captured (allowFuzzy) are not part of the dialect.
    asked: dict[str, str | list[str]] = {"output": "json", "allowFuzzy": "false"}
    kind = chance.choice(["exact", "exact", "prefix", "star", "host", "domain", "dotted"])
    cut = url[: chance.randint(len("http://") + len(host) + 1, len(url))]
    asked |= {
        "exact": {"url": url},
        "prefix": {"url": cut, "matchType": "prefix"},
        "star": {"url": cut + "*"},
        "host": {"url": host, "matchType": "host"},
        "domain": {"url": host, "matchType": "domain"},
        "dotted": {"url": "*." + host},
    }[kind]
    if chance.random() < 0.4:
        asked["from"] = _digits(chance)
    if chance.random() < 0.4:
        asked["to"] = _digits(chance)
    if chance.random() < 0.5:
        choices = ["=status:200", "!=status:200", "~status:[45]..", "mime:html", "!mime:json", "=mime:warc/revisit",
                   "~mime:text/.*", "status:0"]  # fmt: skip
        asked["filter"] = chance.sample(choices, chance.randint(1, 2))
    return asked | _ordered(chance, kind)


def _ordered(chance: random.Random, kind: str) -> dict[str, str | list[str]]:
    choice = chance.random()
    limit = str(chance.randint(1, 20))
    if choice < 0.2 and kind == "exact":
        return {"closest": _digits(chance), "sort": "closest", "limit": limit}
    if choice < 0.35:
        return {"sort": "reverse"}
    return {"limit": limit} if choice < 0.6 else {}


def _digits(chance: random.Random) -> str:
    moment = START + timedelta(minutes=chance.randint(-10_000, 60 * 24 * 250))
    return stamp_at(moment)[: chance.choice([4, 6, 8, 10, 12, 14, 14])]


def rows(body: bytes) -> list[tuple[str, ...]]:
    """What both servers must agree on."""
    return [tuple(json.loads(line).get(name, "") for name in FIELDS) for line in body.decode().splitlines() if line]


def compare_cdx(mine: Served, theirs: Served, chance: random.Random, urls: tuple[str, ...]) -> str:
    """Empty when both answers are the same; else the question."""
    query = urlencode(cdx_question(chance, urls), doseq=True)
    ours, pywb = rows(mine.ask(f"/web/cdx?{query}")[2]), rows(theirs.ask(f"/coll/cdx?{query}")[2])
    return "" if ours == pywb else f"/cdx?{query}\n  ours {len(ours)} {ours[:3]}\n  pywb {len(pywb)} {pywb[:3]}"


def compare_memento(mine: Served, theirs: Served, chance: random.Random, urls: tuple[str, ...]) -> str:
    """The capture that is chosen, its status, date and bytes."""
    url, digits = chance.choice(urls), _digits(chance)
    ours = followed(mine, f"/web/{digits}id_/{url}")
    pywb = followed(theirs, f"/coll/{digits}id_/{url}")
    return "" if ours == pywb else f"{digits}id_/{url}\n  ours {ours}\n  pywb {pywb}"


def followed(served: Served, path: str) -> tuple[int, str, bytes]:
    """The memento itself, after the way to its exact timestamp."""
    status, headers, body = served.ask(path)
    for _ in range(3):
        if status not in (302, 307) or "memento-datetime" in headers:
            break
        target = "/" + headers["location"].split("/", 3)[3] if "://" in headers["location"][:8] else headers["location"]
        status, headers, body = served.ask(target)
    return status, headers.get("memento-datetime", ""), body if status == 200 else b""


def compare_timegate(mine: Served, theirs: Served, chance: random.Random, urls: tuple[str, ...]) -> str:
    """Which memento a date leads to."""
    url = chance.choice(urls)
    moment = START + timedelta(minutes=chance.randint(-10_000, 60 * 24 * 250))
    accept = {"Accept-Datetime": moment.strftime("%a, %d %b %Y %H:%M:%S GMT")}
    found = []
    for served, base in ((mine, "/web/"), (theirs, "/coll/")):
        _, headers, _ = served.ask(base + url, **accept)
        found.append(headers.get("location", "").partition(base)[2].replace("mp_", "").split("/")[0])
    return "" if found[0] == found[1] != "" else f"timegate {url} {accept}\n  ours {found[0]}\n  pywb {found[1]}"


def compare_timemap(mine: Served, theirs: Served, chance: random.Random, urls: tuple[str, ...]) -> str:
    """All captures of a page."""
    url = chance.choice(urls)
    ours = _stamps(mine.ask(f"/web/timemap/link/{url}")[2], "/web/")
    pywb = _stamps(theirs.ask(f"/coll/timemap/link/{url}")[2], "/coll/")
    return "" if ours == pywb != [] else f"timemap {url}\n  ours {ours}\n  pywb {pywb}"


def _stamps(body: bytes, base: str) -> list[str]:
    lines = [line for line in body.decode().splitlines() if "memento" in line and "datetime" in line]
    return sorted(line.partition(base)[2].split("/")[0].removesuffix("mp_") for line in lines)


KINDS = {"cdx": compare_cdx, "memento": compare_memento, "timegate": compare_timegate, "timemap": compare_timemap}


def compare(scene: Scene, count: int, *, as_json: bool, seed: int = 11) -> int:
    """Asks `count` questions, most of them for rows; 0 when all answers agree."""
    chance = random.Random(seed)
    asked: Counter[str] = Counter()
    differing: list[str] = []
    with both(scene) as (mine, theirs):
        for _ in range(count):
            kind = chance.choice(["cdx", "cdx", "cdx", "memento", "timegate", "timemap"])
            asked[kind] += 1
            found = KINDS[kind](mine, theirs, chance, scene.urls)
            if found:
                differing.append(found)
    if as_json:
        print(json.dumps({"asked": asked, "differing": differing}))
    else:
        print("\n".join(differing[:20]))
        print(f"asked {dict(asked)}, {len(differing)} answers differ")
    return 1 if differing else 0
