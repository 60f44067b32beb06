"""From a question to an answer with citations: plan, find and rank pages, gather evidence, write, cite, check."""
