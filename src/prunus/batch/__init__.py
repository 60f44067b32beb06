"""Batches: many jobs from a file of JSON lines, which resume after a stop."""
