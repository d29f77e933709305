"""Parts of the benchmark of the store: its peers, and what growth costs."""
