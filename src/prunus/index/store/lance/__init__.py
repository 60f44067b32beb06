"""An index in tables of Lance, in a folder or on object storage."""
