"""All network access: the egress door, page fetching, web search and JSON services."""
