"""Text: words, sentences, numbers, likeness by words, and secrets that are hidden."""
