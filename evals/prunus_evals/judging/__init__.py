"""Judging: a language model, or people, compare the answers of two systems, or a model grades each of them."""
