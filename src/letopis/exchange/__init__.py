"""Archives of others in, ours out: WARC, WACZ, CDXJ, static copies, Parquet; archives replicated by plain files."""
