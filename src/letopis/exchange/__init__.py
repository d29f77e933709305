"""Import and export of archives: WARC, WACZ, CDXJ, static copies, Parquet; replication by plain files."""
