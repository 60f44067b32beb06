"""The egress door: every address is checked, resolved once and dialled as checked."""
