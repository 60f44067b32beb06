"""Web searches, one file a provider, all asked and answered in the same way."""
