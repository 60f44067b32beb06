"""Language models. One engine, one file."""
