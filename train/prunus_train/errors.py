"""What can go wrong in training, as one line each."""

from __future__ import annotations


class TrainError(Exception):
    """Base of every error that this package raises on purpose."""


class DataBroken(TrainError):
    """A file of training data is missing, or is not what it should be."""


class Stopped(TrainError):
    """Training was interrupted; what was learned is saved."""
