"""Page fetching: HTTP, robots.txt, the cache, snapshots, wall detection and the browser."""
