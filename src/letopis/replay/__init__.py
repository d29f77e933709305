"""Replay of captures: Memento (RFC 7089) and CDX servers under `/web/` and `/cdx/`. Imports nothing."""
