"""Replay of captures: Memento (RFC 7089) and CDX servers under `/web/` and `/cdx/`. Loads nothing by itself."""
