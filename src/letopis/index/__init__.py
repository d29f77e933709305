"""Links and words of all archived pages as of any date: two indexes that follow the record.

Both are derived from the archive and can be deleted at any time; they are rebuilt.
"""
