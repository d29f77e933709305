"""The compact form of all versions of one document, byte-exact, each version readable with bounded work."""

from letopis.store.solid.reading import Decoded, decode, decode_all, needs_newest, newest_span
from letopis.store.solid.writing import Frame, encode

__all__ = ["Decoded", "Frame", "decode", "decode_all", "encode", "needs_newest", "newest_span"]
