"""A browsable copy of an archive as plain files, for any file system and any static server."""

from letopis.exchange.static.copy import CopyReport, export_static
from letopis.exchange.static.names import file_name

__all__ = ["CopyReport", "export_static", "file_name"]
