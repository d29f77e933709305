"""Archives of others in, ours out: WARC, CDXJ."""

from letopis.exchange.selecting import Selected
from letopis.exchange.warc_in import ImportReport, import_files
from letopis.exchange.warc_out import export_warc

__all__ = ["ImportReport", "Selected", "export_warc", "import_files"]
