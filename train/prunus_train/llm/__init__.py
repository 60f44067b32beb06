"""Supervised and preference training of language models: the pruner, the parser and the extractor of the papers."""
