"""What other tools have kept, read where they keep it: folders, histories, databases, mirrors."""

from letopis.exchange.migrate.asked import Asked
from letopis.exchange.migrate.kinds import Kind, recognised
from letopis.exchange.migrate.reading import import_kept, standing_checks
from letopis.exchange.migrate.wishes import Wish

__all__ = ["Asked", "Kind", "Wish", "import_kept", "recognised", "standing_checks"]
