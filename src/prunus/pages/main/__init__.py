"""The page's own content: a score for each run of text, by a small model, without a question."""
