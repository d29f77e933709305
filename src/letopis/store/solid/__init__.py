"""The compact form of all versions of one document, byte-exact, each version readable with bounded work.

What reads frames is here. What writes them is `letopis.store.solid.frame_writer`
(`encode_solid`): it loads numpy and rapidfuzz, which cost more time than most programs that only read will take.
"""

from letopis.store.solid.frame_reader import decode, decode_all, needs_known, needs_newest, newest_span

__all__ = ["decode", "decode_all", "needs_known", "needs_newest", "newest_span"]
