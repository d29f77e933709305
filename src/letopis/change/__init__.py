"""(old, new) -> what changed: digests, blocks, near-duplicates, differences and how they are shown.

Pure functions over pages, texts and bytes; nothing here reads or writes
anything, and no input makes any of it run without bound.
"""
