"""(old, new) -> what changed: digests, blocks, near-duplicates, differences and how they are shown.

Pure functions of pages, texts and bytes; they read and write nothing, and take bounded time for any input.
"""
