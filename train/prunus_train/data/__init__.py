"""Makers of training data."""
