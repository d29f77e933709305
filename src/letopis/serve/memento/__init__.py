"""Memento (RFC 7089): dates are negotiated, captures are replayed."""

from letopis.serve.memento.routes import ROUTES

__all__ = ["ROUTES"]
