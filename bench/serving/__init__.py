"""Parts of the benchmark of the web service."""
