"""Crash points are named, and there are no others in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import olstream
from olstream import crash
from olstream.errors import ConfigError


def test_every_point_that_can_be_asked_for_is_passed_somewhere() -> None:
    sources = [path.read_text() for path in Path(olstream.__file__).parent.rglob("*.py")]

    passed = {name for source in sources for name in re.findall(r'crash\.point\("([a-z.]+)"\)', source)}

    assert passed == set(crash.POINTS)


@pytest.mark.parametrize("asked", ["commit", "commit.after:x", "commit.after:0", "commit.after:-1", "nowhere.before"])
def test_a_point_that_does_not_exist_is_refused(asked: str) -> None:
    with pytest.raises(ConfigError, match="write POINT or POINT:N"):
        crash.arm({crash.VARIABLE: asked})
