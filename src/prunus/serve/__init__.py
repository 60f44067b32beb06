"""The server: Prunus over HTTP, for programs and for clients of OpenAI's API."""
