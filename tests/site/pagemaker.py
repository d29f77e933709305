"""Generated pages that change the way real ones do: a template, and a list that moves on."""

import random

_WORDS = [
    f"{a}{b}{c}" for a in ("ka", "mo", "te", "ri", "su") for b in ("lan", "ver", "dos", "nik") for c in ("", "a", "ek")
]


def words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(count))


def history(seed: int, versions: int, size: int = 6000) -> list[bytes]:
    """Versions of one page, oldest first, each different from the one before."""
    rng = random.Random(seed)
    head = f"<html><head><title>{words(rng, 4)}</title><style>{words(rng, size // 60)}</style></head><body>"
    items = [f"<li><a href='/{rng.randrange(10**6)}'>{words(rng, 8)}</a></li>\n" for _ in range(max(2, size // 130))]
    pages = []
    for number in range(versions):
        for _ in range(rng.randrange(1, 4)):
            items.insert(0, f"<li><a href='/{rng.randrange(10**6)}'>{words(rng, 8)}</a></li>\n")
            items.pop()
        pages.append(f"{head}<p>update {number}</p><ul>{''.join(items)}</ul></body></html>".encode())
    return pages


def site_history(site: int, document: int, versions: int) -> list[bytes]:
    """Versions of a page with the navigation that all pages of its site have, oldest first."""
    rng = random.Random(site)
    links = (f"<a href='/{rng.randrange(10**9)}'>{words(rng, 4)} {rng.randrange(10**6)}</a>" for _ in range(60))
    frame = "\n".join(links)
    own = history(1000 * site + document, versions, 700)
    return [f"<nav>{frame}</nav>\n".encode() + page for page in own]
