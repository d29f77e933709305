"""One check of one URL: ask whether it is allowed, fetch, parse, compare, and pass the result on to be recorded."""
