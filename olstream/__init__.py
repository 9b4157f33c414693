"""Continuous learning on event streams: predict, then update, exactly once."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from olstream.api import Learner, Prediction, Report

__version__ = "0.1.0"
__all__ = ["Learner", "Prediction", "Report", "__version__"]


def __getattr__(name: str) -> Any:
    # lazily: the command line should not wait for numba, nor a notebook for Kafka
    if name in __all__:
        from olstream import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
