"""Who asks, and what they may see and do."""

from __future__ import annotations

from dataclasses import dataclass

from letopis.catalog.accounts import OWN, READ, WRITE
from letopis.fetch import Origin


@dataclass(frozen=True, slots=True)
class Asker:
    """Somebody with a name and a permission mask. `system` ones (daemons) stand behind people in the queue."""

    name: str
    mask: int
    origin: Origin
    system: bool = False

    def may_see(self, owner: str, permission: int) -> bool:
        """Whether a job or question of an owner is shown: to all whose mask holds its permission, and to the owner."""
        return self.mask & permission == permission or self.owns(owner)

    def owns(self, owner: str) -> bool:
        """Whether it is theirs."""
        return bool(self.name) and self.name == owner

    def may_change(self, owner: str) -> bool:
        """Whether they may cancel or forget it: their own, or anything for an owner of the archive."""
        return self.owns(owner) or bool(self.mask & OWN)


COMMAND_LINE = Asker("command line", READ | WRITE | OWN, "cli")
"""Whoever runs the archive. No account can have this name."""
