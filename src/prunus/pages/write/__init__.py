"""Writers: render trees, or kept parts of them, as HTML, Markdown and plain text."""
