"""Speed and memory of Prunus beside its reference: each program prints a table and a JSON line."""
