"""Search providers, one file each; all share the requests and checks of :mod:`._wire`."""
