"""An index in tables of LanceDB, in a folder or on object storage."""
