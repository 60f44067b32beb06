"""Back-ends of generative pruning: language models that give probabilities for the branches of a token tree."""
