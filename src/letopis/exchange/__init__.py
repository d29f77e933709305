"""Archives of others in, ours out: WARC, WACZ, CDXJ, static copies, Parquet."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from letopis.exchange.cdx import export_cdxj
    from letopis.exchange.imports import import_sources
    from letopis.exchange.selection import ExportSelection
    from letopis.exchange.sources import ImportReport
    from letopis.exchange.wacz_export import export_wacz
    from letopis.exchange.warc_export import export_warc
    from letopis.exchange.warc_import import import_files

__all__ = [
    "ExportSelection",
    "ImportReport",
    "export_cdxj",
    "export_wacz",
    "export_warc",
    "import_files",
    "import_sources",
]

_HOMES = {
    "ExportSelection": "selection",
    "ImportReport": "sources",
    "export_cdxj": "cdx",
    "export_wacz": "wacz_export",
    "export_warc": "warc_export",
    "import_files": "warc_import",
    "import_sources": "imports",
}


def __getattr__(name: str) -> Any:
    """Public names are loaded when first used: what comes in needs nothing of what goes out."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
