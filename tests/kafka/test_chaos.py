"""Each scenario of the chaos package that is short enough, once, with a seed that stays the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.broker import BrokerUnavailable, Kafka
from tests.kafka.chaos.scenario import NotHere, Scenario, scenarios

SEED = 4
BOUNDED = [one for one in scenarios().values() if one.bounded]


@pytest.fixture(scope="module")
def cluster(kafka: str, request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """Nodes that may be hurt. Whoever gave us a broker to test with has not allowed that."""
    try:
        with Kafka(request.param) as nodes:
            yield nodes
    except BrokerUnavailable as error:
        pytest.skip(f"no broker of our own to hurt: {error}")


@pytest.mark.parametrize(
    ("cluster", "scenario"),
    [pytest.param(one.nodes, one, id=one.name) for one in sorted(BOUNDED, key=lambda one: one.nodes)],
    indirect=["cluster"],
)
def test_what_happens_to_deployments_leaves_no_trace(cluster: Kafka, scenario: Scenario) -> None:
    try:
        scenario.run(cluster, SEED)
    except NotHere as reason:
        pytest.skip(str(reason))
    finally:
        cluster.start_what_is_down()
