"""The compact form of all versions of one document, byte-exact, each version readable with bounded work.

The reader of frames is here. The writer is `letopis.store.solid.frame_writer` (`encode_solid`): it loads numpy and
rapidfuzz, which takes longer than most programs that only read.
"""

from letopis.store.solid.frame_reader import decode, decode_all, needs_known, needs_newest, newest_span

__all__ = ["decode", "decode_all", "needs_known", "needs_newest", "newest_span"]
