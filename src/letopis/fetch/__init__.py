"""One polite, bounded, conditional HTTP exchange; the optional browser."""

from letopis.fetch.addresses import Origin, is_private_url, is_public, private_ok

__all__ = ["Origin", "is_private_url", "is_public", "private_ok"]
