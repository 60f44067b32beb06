"""Token counters count the tokens of texts as a model does. One engine per file."""
