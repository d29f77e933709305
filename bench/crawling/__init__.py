"""Parts of the benchmark of crawls."""
