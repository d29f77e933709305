"""Parts of Letopis in C, for what a profile shows to be slow in Python. Each has a twin there that does the same."""
