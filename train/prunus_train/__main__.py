"""Runs ``prunus train`` as ``python -m prunus_train``."""

from prunus_train.cli import main

main()
