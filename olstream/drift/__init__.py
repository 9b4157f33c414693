"""Drift detectors: each tells from a stream of errors or losses whether its level has changed; pick one."""

from olstream.drift.detector import NAMES, Detector, check

__all__ = ["NAMES", "Detector", "check"]
