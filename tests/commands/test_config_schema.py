"""`olstream config-schema`."""

from __future__ import annotations

import json

import pytest

from olstream.__main__ import main
from olstream.schema import json_schema


def test_the_schema_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config-schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()
