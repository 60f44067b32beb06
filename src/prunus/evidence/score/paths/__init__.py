"""Back-ends of generative pruning: language models that say how likely the branches of a token tree are."""
