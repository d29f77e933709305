"""Benchmarks: one script each, peers side by side."""
