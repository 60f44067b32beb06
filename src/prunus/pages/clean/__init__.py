"""Parse, clean, cut into blocks and render HTML. The heart of Prunus."""
