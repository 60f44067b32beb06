"""Benchmarks of speed and memory, against the reference where there is one; each prints a table and a JSON line."""
