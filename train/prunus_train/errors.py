"""The errors of training; each message is one line."""

from __future__ import annotations


class TrainError(Exception):
    """Base of every expected error of this package."""


class DataBroken(TrainError):
    """A file of training data is missing or damaged, or does not fit the training."""


class Stopped(TrainError):
    """Training was interrupted; a checkpoint was saved."""
