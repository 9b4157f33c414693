"""The stream that takes the flights' place."""

from __future__ import annotations

import json
from itertools import islice

from olstream.demo.synthetic import synthetic


def test_every_run_streams_the_same() -> None:
    first, second = (list(islice(synthetic().messages, 500)) for _ in range(2))

    assert first == second


def test_both_classes_occur_and_the_second_is_the_rarer() -> None:
    labels = [json.loads(value)["label"] for _, value in islice(synthetic().messages, 5000)]

    assert set(labels) == set(synthetic().classes)
    assert 0.1 < labels.count("yes") / len(labels) < 0.5
