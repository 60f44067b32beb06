"""The engine ``prunus``: a small cross-encoder, with its weights."""
