"""What every part agrees on: data, settings, errors, events, ports, the registry of engines, and text."""
