"""Fetching: the one egress door, pages over HTTP, robots.txt, the cache, the browser."""
