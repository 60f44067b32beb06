"""Training of Prunus' models: makers of training data, and trainers. The core never imports this package."""
