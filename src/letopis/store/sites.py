"""What was decided about the known texts of sites."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from itertools import islice

from letopis.store.texts import Known
from letopis.store.values import Entry

Siblings = Callable[[bytes], Iterable[Entry]]
"""The newest versions of some documents of a site, with places that are fresh."""
_REMEMBERED = 64
_SAMPLE = 12


def no_siblings(site: bytes) -> Iterable[Entry]:
    """For stores whose documents belong to no site."""
    return ()


class Sites:
    """What was decided for each site. Hand the same one to all compactions of a run, so that it is decided once."""

    def __init__(self, siblings: Siblings = no_siblings) -> None:
        self._siblings = siblings
        self._decided: OrderedDict[bytes, Known] = OrderedDict()

    def sample(self, site: bytes) -> list[Entry]:
        """Newest versions to judge a site by."""
        return list(islice(self._siblings(site), _SAMPLE))

    def decided(self, site: bytes) -> Known | None:
        """The text of a site; None when that is still open."""
        return self._decided.get(site)

    def decide(self, site: bytes, known: Known) -> None:
        """Remembers the text of a site, or that it has none."""
        self._decided[site] = known
        if len(self._decided) > _REMEMBERED:
            self._decided.popitem(last=False)

    def keep(self, packs: Collection[int]) -> None:
        """Forgets the texts of packs that are not there (any more)."""
        for site, known in list(self._decided.items()):
            if known.at is not None and known.at.pack not in packs:
                del self._decided[site]
