"""An index in a folder: an SQLite database."""
