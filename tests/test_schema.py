"""The JSON Schema says the keys as the file writes them."""

from __future__ import annotations

from olstream.config import Config
from olstream.schema import json_schema


def test_the_schema_has_every_key_of_the_file() -> None:
    schema = json_schema()

    assert {"kafka_wait", "commit_interval", "learners"} <= schema["properties"].keys()
    assert len(schema["properties"]) == len(Config.model_fields)
    assert schema["required"] == ["learners"]
    assert schema["additionalProperties"] is False


def test_a_duration_is_text_with_its_unit() -> None:
    interval = json_schema()["$defs"]["CheckpointConfig"]["properties"]["interval"]

    assert interval["type"] == "string"
    assert interval["default"] == "30s"


def test_a_number_may_come_from_the_environment() -> None:
    slot = json_schema()["properties"]["slot"]

    assert slot["anyOf"] == [
        {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**31},
        {"$ref": "#/$defs/FromEnvironment"},
    ]
