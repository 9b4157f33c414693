"""The image, built once, and the broker of tests/kafka for the containers that are made of it.

Without podman and the like nothing here is tested: a failure where CI=true, a skip elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NoReturn

import pytest

from tests.container import images
from tests.container.engine import Engine, EngineUnavailable
from tests.kafka.conftest import kafka, name, service, topics

__all__ = ["engine", "image", "kafka", "name", "service", "topics"]


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    try:
        made = Engine()
    except EngineUnavailable as error:
        _left_out(f"no containers: {error}")
    with made:
        yield made


@pytest.fixture(scope="session")
def image(engine: Engine) -> str:
    """The name of the image that the Dockerfile makes."""
    try:
        return images.build(engine)
    except EngineUnavailable as error:
        _left_out(f"no image: {error}")


def _left_out(missing: str) -> NoReturn:
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "image" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
