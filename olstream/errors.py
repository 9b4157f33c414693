"""Every error that ends a command, by who must act, with the exit code.

    OlstreamError            1   unexpected
    ├── ConfigError          2   whoever wrote the configuration or the command line
    ├── KafkaError           3   whoever runs Kafka: unreachable, or it refused us
    ├── StateError           4   the operator decides: the message names the choices
    └── FencedError          5   another worker holds this slot

A bad message is no error: see `messages.Reject`.
"""

from __future__ import annotations


class OlstreamError(Exception):
    """One sentence that says what is wrong, where, and what to do."""

    exit_code = 1


class ConfigError(OlstreamError, ValueError):
    """The configuration, the command line, or a directory that cannot be written. In Python also a ValueError."""

    exit_code = 2


class KafkaError(OlstreamError):
    """Kafka could not be reached in time, or it refused what we asked."""

    exit_code = 3


class StateError(OlstreamError):
    """State that only a person can decide about; the sentence lists what they can do."""

    exit_code = 4


class FencedError(OlstreamError):
    """Another worker holds this slot."""

    exit_code = 5
