"""Runs ``prunus eval`` as ``python -m prunus_evals``."""

from prunus_evals.cli import main

main()
