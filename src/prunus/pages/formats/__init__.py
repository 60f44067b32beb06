"""Format engines: each converts one kind of document to HTML. One engine is one file or one package."""
