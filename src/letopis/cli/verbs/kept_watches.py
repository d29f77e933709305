"""Standing checks that other tools kept, joined to ours when an import is asked for them."""

from __future__ import annotations

from collections.abc import Iterable

from letopis.archive import Archive
from letopis.errors import LetopisError
from letopis.exchange.migrate import Wish
from letopis.exchange.report import ImportReport
from letopis.monitor.book import WatchBook
from letopis.monitor.comparing import filters_of
from letopis.monitor.watch import WatchSpec


def watch_all(archive: Archive, wishes: Iterable[Wish], report: ImportReport) -> int:
    """Watches what can be watched, and answers how many; the report names the others."""
    book = WatchBook(archive)
    return sum(_watched(book, wish, report) for wish in wishes)


def _watched(book: WatchBook, wish: Wish, report: ImportReport) -> bool:
    for name in wish.left_out:
        report.refuse(f"the watch is kept without its {name}, which has no counterpart", wish.url)
    filters = tuple(one for one in wish.filters if _is_sound(one, wish.url, report))
    try:
        book.add([wish.url], WatchSpec(every=wish.every, filters=filters), wish.tag)
        if wish.paused:
            book.pause([wish.url])
    except LetopisError as error:
        report.refuse(f"its watch cannot be kept ({error})", wish.url)
        return False
    return True


def _is_sound(one: tuple[str, str], url: str, report: ImportReport) -> bool:
    """Whether a filter can be carried out here; one that cannot is named, and the watch is kept without it."""
    try:
        filters_of([one])
    except LetopisError as error:
        report.refuse(f"the watch is kept without a filter ({error})", url)
        return False
    return True
