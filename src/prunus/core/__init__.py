"""The core that every other part imports: data types, settings, errors, events, ports, engine registry, text."""
