"""What `olstream send` makes of a row, and of the pace."""

from __future__ import annotations

from pathlib import Path

import pytest

from olstream.__main__ import main
from olstream.commands.send import as_message
from olstream.config import FieldsConfig

ROW = {"id": 7, "price": 2.5, "label": "up", "weight": 3, "leak": 1}


def test_columns_of_a_table_are_features_but_for_those_that_are_mapped_or_excluded() -> None:
    message = as_message(ROW, "csv", FieldsConfig(), frozenset({"leak"}))

    assert message == {"id": 7, "label": "up", "leak": 1, "features": {"price": 2.5, "weight": 3}}


def test_a_mapped_column_stays_where_the_service_looks_for_it() -> None:
    message = as_message(ROW, "csv", FieldsConfig(label="price", weight="weight", features="data.x"), frozenset())

    assert message == {"id": 7, "price": 2.5, "weight": 3, "data.x": {"label": "up", "leak": 1}}


def test_a_service_that_takes_whole_messages_gets_the_row_as_it_is() -> None:
    assert as_message(ROW, "csv", FieldsConfig(features="."), frozenset()) == ROW


def test_a_sparse_row_is_put_under_the_services_own_names() -> None:
    row = {"features": {"1": 0.5}, "label": 1}

    assert as_message(row, "libsvm", FieldsConfig(label="y"), frozenset()) == {"features": {"1": 0.5}, "y": 1}
    assert as_message(row, "libsvm", FieldsConfig(features="."), frozenset()) == {"1": 0.5, "label": 1}
    assert as_message({"features": {}}, "libsvm", FieldsConfig(), frozenset()) == {"features": {}}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none", "No such file"),
        ("none.bin", "No such file"),
        ("none.csv", "No such file"),
        ("there.bin", "--format"),
    ],
)
def test_a_file_that_cannot_be_sent_is_told_before_kafka_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    (tmp_path / "c.yaml").write_text("learners: {a: }\nkafka: {bootstrap.servers: nowhere}\ninput: {topics: [t]}\n")
    (tmp_path / "there.bin").write_bytes(b"")

    assert main(["send", str(tmp_path / "c.yaml"), str(tmp_path / name)]) == 2
    assert said in capsys.readouterr().err


def test_standard_input_cannot_be_sent_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text("learners: {a: }\nkafka: {bootstrap.servers: k}\ninput: {topics: [t]}\n")

    assert main(["send", str(tmp_path / "c.yaml"), "-", "--loop"]) == 2
    assert "standard input ends only once" in capsys.readouterr().err
