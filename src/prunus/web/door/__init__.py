"""The egress door: resolves each host once, checks every address, and connects only to a checked address."""
