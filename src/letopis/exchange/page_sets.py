"""Looks at whole pages that an import collected become capture sets of the imported checks.

They are stored after their captures: an import that is stopped in between stores them when it is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letopis.archive import Archive
from letopis.archive.imported import ImportedSet, checks_between, keep_sets, valid_then
from letopis.errors import LetopisError
from letopis.exchange import page_looks
from letopis.exchange.page_looks import AFTER, PICTURES, TEXTS, MadeRecord, PageLook, is_picture
from letopis.exchange.sources import ImportReport
from letopis.model import SetMember, from_millis, to_millis
from letopis.urls import normalize
from letopis.urls.request_keys import record_url

NOT_HERE = "a whole page without its capture"
_SAME_SECOND = 999
_AT_ONCE = 16


def record_looks(archive: Archive, report: ImportReport) -> None:
    """Keeps the sets of looks whose checks are in the archive by now; behind each batch of captures."""
    looks = report.looks
    if looks.ready:
        found = [(look, _own_set(archive, look)) for look in looks.ready]
        _keep(archive, (one for _, one in found if one is not None), report)
        lost = [look for look, one in found if one is None][: -page_looks.MOST_LOOKS]
        _refuse_lost(lost, report)
        looks.drop_ready([look for look, one in found if one is not None] + lost)
    if looks.full:
        _record_open(archive, report, everything=len(looks.made) > page_looks.MOST_LOOKS)


def complete_looks(archive: Archive, report: ImportReport) -> None:
    """The same of all that is left, at the end of an import; then pictures and texts of captures of their own."""
    record_looks(archive, report)
    _refuse_lost(report.looks.ready, report)
    report.looks.drop_ready(list(report.looks.ready))
    _record_open(archive, report, everything=True)


def _refuse_lost(lost: Iterable[PageLook], report: ImportReport) -> None:
    for look in lost:
        report.refuse(NOT_HERE, look.url)


def _own_set(archive: Archive, look: PageLook) -> ImportedSet | None:
    """The set of a look written by Letopis, whose times are exact; None while its page has no check."""
    if look.time is None or not checks_between(archive, look.url, look.time, look.time):
        return None
    members = tuple(SetMember(url, from_millis(time)) for url, time in look.listed if time is not None)
    return ImportedSet(look.url, look.time, members, look.screenshot, look.text)


def _record_open(archive: Archive, report: ImportReport, *, everything: bool) -> None:
    texts: list[ImportedSet] = []
    sets: list[ImportedSet] = []
    for look in report.looks.taken_out(everything=everything):
        found = _set_of_others(archive, look)
        if found is not None:
            sets.append(found)
            texts += [ImportedSet(found.url, found.time, None, text=look.text)] if look.text else []
            report.looks.made += _made_before(archive, found)
        elif look.answered:
            report.refuse(NOT_HERE, look.url)
    _keep(archive, sets, report)
    if everything:
        _attach_made(archive, report)
    _keep(archive, texts, report)


def _keep(archive: Archive, found: Iterable[ImportedSet], report: ImportReport) -> None:
    different = list({(one.url, one.time): one for one in reversed(list(found))}.values())[::-1]
    for start in range(0, len(different), _AT_ONCE):
        report.sets += keep_sets(archive, different[start : start + _AT_ONCE])


def _set_of_others(archive: Archive, look: PageLook) -> ImportedSet | None:
    """The set of a look written by other tools; None if the check of its page is not here."""
    members = list(look.members)
    if not look.url and len(members) < 2:
        return None
    if not look.url:
        look.url, look.time = min(members, key=lambda one: one[1])
    time = _page_time(archive, look)
    if time is None:
        return None
    found = {SetMember(url, from_millis(at)): None for url, at in members if (url, at) != (look.url, time)}
    by_id = {url for url, _ in members}
    for url, at in look.listed:
        if at is not None:
            found[SetMember(url, from_millis(at))] = None
        elif url not in by_id and (then := valid_then(archive, url, time)) is not None:
            found[then] = None
    return ImportedSet(look.url, time, tuple(found))


def _page_time(archive: Archive, look: PageLook) -> int | None:
    """When the page of a look was checked: at the given time, else that of its record, else last before."""
    times = [look.time] if look.time is not None else []
    times += sorted(time for url, time in look.members if url == look.url)
    for time in times:
        if found := checks_between(archive, look.url, time, time + _SAME_SECOND):
            return found[0]
    if look.date is None:
        return None
    return max(checks_between(archive, look.url, look.date - AFTER, look.date + _SAME_SECOND), default=None)


def _made_before(archive: Archive, found: ImportedSet) -> Iterator[MadeRecord]:
    """Pictures and texts of a look from earlier imports."""
    for scheme in (*PICTURES, *TEXTS):
        url = normalize(record_url(found.url, scheme))
        for time in checks_between(archive, url, found.time, found.time + AFTER):
            yield MadeRecord(found.url, url, time, scheme)


def _attach_made(archive: Archive, report: ImportReport) -> None:
    """Gives sets the pictures and texts of their looks, the best of each."""
    best: dict[tuple[str, int, bool], MadeRecord] = {}
    order = (*PICTURES, *TEXTS)
    for made in sorted(report.looks.made, key=lambda one: (order.index(one.scheme), one.time)):
        time = _look_before(archive, made)
        if time is not None:
            best.setdefault((made.page, time, made.scheme in PICTURES), made)
    report.looks.made.clear()
    for (_, time, _), made in best.items():
        found = _loaded(archive, made, time, report)
        _keep(archive, [found] if found is not None else [], report)


def _look_before(archive: Archive, made: MadeRecord) -> int | None:
    """The last look at a page before something was made of it; None also where it has that already."""
    span = (from_millis(made.time - AFTER), from_millis(made.time + _SAME_SECOND))
    found = archive.sets.of(made.page, *span)
    if not found or (found[-1].has_screenshot if made.scheme in PICTURES else found[-1].has_text):
        return None
    return to_millis(found[-1].time)


def _loaded(archive: Archive, made: MadeRecord, time: int, report: ImportReport) -> ImportedSet | None:
    try:
        body = archive.get(made.url, at=from_millis(made.time)).body
    except LetopisError as error:
        report.refuse(str(error), made.url)
        return None
    if made.scheme in TEXTS:
        return ImportedSet(made.page, time, None, text=body.decode("utf-8", "replace"))
    if not is_picture(body):
        report.refuse("a page picture that is not an image", made.page)
        return None
    return ImportedSet(made.page, time, None, screenshot=body)
