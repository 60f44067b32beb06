"""A whole run in one file, and its replay."""
