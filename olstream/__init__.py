"""Continuous learning on event streams: predict, then update, exactly once."""

__version__ = "0.1.0"
