"""Letopis: the web, remembered."""

__version__ = "0.1.0"
