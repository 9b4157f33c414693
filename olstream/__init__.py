"""Continuous learning on event streams: predict, then update, exactly once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from olstream.alm import svm
    from olstream.api import Learner, Prediction, Report
    from olstream.drift import Detector
    from olstream.errors import ConfigError, OlstreamError, StateError

__version__ = "0.1.0"
__all__ = [
    "ConfigError",
    "Detector",
    "Learner",
    "OlstreamError",
    "Prediction",
    "Report",
    "StateError",
    "__version__",
    "svm",
]


def __getattr__(name: str) -> Any:
    # lazily: the command line should not wait for numba, nor a notebook for Kafka
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "errors" if name.endswith("Error") else {"svm": "alm", "Detector": "drift"}.get(name, "api")
    return getattr(import_module(f"olstream.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
