"""What of the pages fits a budget: blocks, scores, pruning, marks."""
