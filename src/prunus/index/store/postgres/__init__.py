"""An index in a schema of a PostgreSQL database with pgvector."""
