"""Which URL may be fetched now: states, seen set, host queues, filters, traps."""
