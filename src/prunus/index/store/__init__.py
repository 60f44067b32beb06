"""Stores: keep the documents, nodes and vectors of an index. Each engine is one file or one folder."""
