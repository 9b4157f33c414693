"""Continuous learning on event streams: predict, then update, exactly once."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from olstream.alm import svm
    from olstream.api import Learner, Prediction, Report
    from olstream.errors import ConfigError, OlstreamError, StateError

__version__ = "0.1.0"
__all__ = ["ConfigError", "Learner", "OlstreamError", "Prediction", "Report", "StateError", "__version__", "svm"]


def __getattr__(name: str) -> Any:
    # lazily: the command line should not wait for numba, nor a notebook for Kafka
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.endswith("Error"):
        from olstream import errors

        return getattr(errors, name)
    if name == "svm":
        from olstream import alm

        return alm.svm
    from olstream import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
