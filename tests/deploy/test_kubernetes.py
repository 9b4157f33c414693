"""The manifests render, keep to the schemas of the API, and are made from the one source of rules and dashboards."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.deploy.boards import BOARDS
from tests.deploy.cluster import KUBERNETES, Rendered, overlay, rendered, together
from tests.deploy.prometheus import RULES

VERSIONS = ("1.29", "1.33", "1.37")
SCHEMAS = {path.stem: path for path in sorted((Path(__file__).parent / "schemas").glob("*.json"))}
APPLIED_BYTES_MAX = 262_144  # `kubectl apply` keeps a copy in an annotation, which holds no more
COMBINED = {
    "dev": ["overlays/dev"],
    "prod": ["overlays/prod"],
    "dev monitored and scaled": ["overlays/dev", "components/monitoring", "components/keda"],
    "prod scaled": ["overlays/prod", "components/keda"],
}
each_combination = pytest.mark.parametrize("parts", COMBINED.values(), ids=COMBINED.keys())


def faults(thing: dict[str, Any], tmp_path: Path) -> str:
    """What a kind that is not Kubernetes's own has against its schema."""
    path = tmp_path / "thing.json"
    path.write_text(json.dumps(thing))
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(SCHEMAS[thing["kind"]]), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


# Rendered and valid


@each_combination
def test_every_object_keeps_to_the_schema_of_its_kind(tmp_path: Path, parts: list[str]) -> None:
    found = together(tmp_path / "all", *parts)

    for thing in found.objects:
        if thing["kind"] in SCHEMAS:
            assert faults(thing, tmp_path) == ""
        for version in VERSIONS if thing["kind"] not in SCHEMAS else ():
            kubernetes_validate.validate(thing, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_slip_in_a_manifest_would_be_seen(version: str) -> None:
    thing = copy.deepcopy(overlay("dev").one("StatefulSet"))
    container = thing["spec"]["template"]["spec"]["containers"][0]
    container["readynessProbe"] = container.pop("readinessProbe")

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(thing, version, strict=True)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("ServiceMonitor", '"targetLabel"', '"targetLable"'),
        ("PrometheusRule", '"for"', '"fore"'),
        ("ScaledObject", '"minReplicaCount": 1', '"minReplicaCount": "1"'),
        ("ScaledObject", '"periodSeconds": 1800', '"periodSeconds": 3600'),
    ],
)
def test_a_slip_in_another_kind_would_be_seen(tmp_path: Path, kind: str, right: str, wrong: str) -> None:
    found = together(tmp_path / "all", "overlays/dev", "components/monitoring", "components/keda")
    text = json.dumps(found.one(kind))
    assert right in text

    assert faults(json.loads(text.replace(right, wrong)), tmp_path) != ""


@each_combination
def test_everything_but_the_namespace_itself_is_in_one_namespace(tmp_path: Path, parts: list[str]) -> None:
    found = together(tmp_path / "all", *parts)

    (namespace,) = {thing["metadata"].get("namespace") for thing in found.objects if thing["kind"] != "Namespace"} - {
        None
    }
    assert found.one("Namespace")["metadata"]["name"] == namespace
    assert found.one("Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_another_configuration_is_a_rollout(tmp_path: Path) -> None:
    shutil.copytree(KUBERNETES, tmp_path / "kubernetes")
    config = tmp_path / "kubernetes" / "base" / "config.yaml"

    config.write_text(config.read_text() + "commit_interval: 1s\n")

    def of(found: Rendered) -> Any:
        return next(volume["configMap"]["name"] for volume in found.pod["volumes"] if volume["name"] == "config")

    assert of(rendered(tmp_path / "kubernetes" / "overlays" / "dev")) != of(overlay("dev"))


# One source


def test_the_files_are_what_the_script_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-B", KUBERNETES / "build.py", tmp_path], check=True)

    for path in tmp_path.iterdir():
        assert path.read_text() == (KUBERNETES / "components" / "monitoring" / path.name).read_text(), path.name
    assert {path.name for path in tmp_path.iterdir()} == {"rules.yaml", "dashboards.yaml"}


def test_the_cluster_gets_the_rules_and_dashboards_that_there_are() -> None:
    found = overlay("prod")
    boards = {name: text for each in found.all("ConfigMap") for name, text in each["data"].items() if "json" in name}

    assert found.one("PrometheusRule")["spec"] == yaml.safe_load(RULES.read_text())
    assert {name: json.loads(text) for name, text in boards.items()} == {
        path.name: json.loads(path.read_text()) for path in BOARDS.values()
    }


def test_a_dashboard_is_found_and_small_enough() -> None:
    boards = [each for each in overlay("prod").all("ConfigMap") if "dashboard" in each["metadata"]["name"]]

    assert len(boards) == len(BOARDS)
    for each in boards:
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert len(json.dumps(each)) < APPLIED_BYTES_MAX
