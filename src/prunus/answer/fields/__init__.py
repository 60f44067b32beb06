"""Fields of a JSON schema, filled from pages with a citation for each."""
