"""A web that keeps its own log, and what the record of an archive says against it."""
