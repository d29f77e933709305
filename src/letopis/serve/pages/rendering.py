"""Templates: where they lie and how values are written in them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from letopis import __version__
from letopis.model import rfc3339, stamp14
from letopis.schedule.why import span
from letopis.serve.pages.languages import LANGUAGES, grouped, say, say_count, spoken

_HERE = Path(__file__).parent.parent
STATIC = _HERE / "static"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_IN_PATH = "/:@!$&'()*+,;=-._~[]"


def short(moment: datetime | None) -> str:
    """`2026-03-01 12:00`, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if moment else ""


def day(moment: datetime | None) -> str:
    """`2026-03-01`, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d") if moment else ""


def size(count: float) -> str:
    """`812 B`, `4.1 kB`, as the reader's language writes it."""
    step = 0
    while count >= 1000 and step < len(_UNITS) - 1:
        count, step = count / 1000, step + 1
    return f"{count:.0f} {_UNITS[step]}" if step == 0 else f"{decimal(count)} {_UNITS[step]}"


def decimal(value: float, places: int = 1) -> str:
    """`4.1`, or `4,1`."""
    return f"{value:.{places}f}".replace(".", spoken().decimal)


def share(part: float) -> str:
    """`12.5 %`."""
    return f"{decimal(100 * part)}\u00a0%"


def inside(url: str) -> str:
    """A page's address as it stands inside one of ours: as it is, escaped only where it has a query."""
    return quote(url, safe=_IN_PATH) if "?" in url else url


def bare(url: str) -> str:
    """An address without its scheme, for lists."""
    return url.partition("://")[2] or url


def local(url: str, site: str) -> str:
    """The same as a list of a site shows it: without the site where that is its host."""
    text = bare(url)
    return text.removeprefix(site) if text.startswith(f"{site}/") else text


def sentence(message: str) -> str:
    """A message with a capital at its start, unless that is an address, and a full stop at its end."""
    first = message.partition(" ")[0]
    return f"{message if '://' in first else message[:1].upper() + message[1:]}."


environment = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
environment.filters |= {
    "short": short,
    "day": day,
    "size": size,
    "number": grouped,
    "decimal": decimal,
    "share": share,
    "inside": inside,
    "bare": bare,
    "local": local,
    "sentence": sentence,
    "span": span,
    "rfc3339": rfc3339,
    "stamp": stamp14,
}
environment.globals |= {"version": __version__, "languages": LANGUAGES, "spoken": spoken, "_": say, "n_": say_count}
