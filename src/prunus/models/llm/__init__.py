"""Language models. One engine per file."""
