"""Archives of others in, ours out: WARC, WACZ, CDXJ, static copies, Parquet."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from letopis.exchange.cdxj_out import export_cdxj
    from letopis.exchange.importing import import_sources
    from letopis.exchange.report import ImportReport
    from letopis.exchange.selecting import Selected
    from letopis.exchange.wacz_out import export_wacz
    from letopis.exchange.warc_in import import_files
    from letopis.exchange.warc_out import export_warc

__all__ = ["ImportReport", "Selected", "export_cdxj", "export_wacz", "export_warc", "import_files", "import_sources"]

_HOMES = {
    "ImportReport": "report",
    "Selected": "selecting",
    "export_cdxj": "cdxj_out",
    "export_wacz": "wacz_out",
    "export_warc": "warc_out",
    "import_files": "warc_in",
    "import_sources": "importing",
}


def __getattr__(name: str) -> Any:
    """Public names are loaded when first used: what comes in needs nothing of what goes out."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
