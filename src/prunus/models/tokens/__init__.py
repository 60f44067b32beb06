"""Token counters: what a text costs a model. One engine, one file."""
