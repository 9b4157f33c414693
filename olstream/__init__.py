"""Continuous learning on event streams: predict, then update, exactly once."""
