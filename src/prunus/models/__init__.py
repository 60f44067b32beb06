"""Language models, embedders, rerankers, tokenizers, prompts, and the meter of what they cost."""
