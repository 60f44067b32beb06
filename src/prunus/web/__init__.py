"""The only door to the network: egress, fetching, search, JSON services."""
