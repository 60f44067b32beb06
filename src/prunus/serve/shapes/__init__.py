"""The shapes of requests and replies that other programs already speak: one file a shape, all on the same functions."""
