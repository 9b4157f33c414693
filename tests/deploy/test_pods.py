"""The manifests and the program mean the same: names, ports, paths, and how long things take."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from olstream.app import STOP_PATIENCE_S
from olstream.config import Config, HttpConfig, load
from olstream.io.client import CALL_S
from olstream.io.http import PROBES
from olstream.properties import number, transaction_timeout_s
from tests.deploy import image
from tests.deploy.boards import alerts
from tests.deploy.cluster import ORDINAL, SECRET, Rendered, overlay, together

WRITE_S = 30.0  # left for the last checkpoint: megabytes, on a slow disk
PROGRAM_BYTES = 512 * 1024**2  # it, its compiler and its clients: 290 MB with two learners and little in them
UNITS = {"Mi": 1024**2, "Gi": 1024**3}
each_overlay = pytest.mark.parametrize("name", ["dev", "prod"])


def settings(found: Rendered, tmp_path: Path) -> Config:
    return load(found.unpacked(tmp_path), found.environment)


def named(found: Rendered, port: object) -> int:
    """The number of a port of the container that others call by its name."""
    (number,) = (each["containerPort"] for each in found.container["ports"] if each["name"] == port)
    return int(number)


# Names and paths


@each_overlay
def test_the_pod_runs_the_image_as_it_is_meant(name: str) -> None:
    found = overlay(name)

    assert found.container["image"] == image.NAME
    assert "command" not in found.container and found.container["args"] == image.COMMAND
    assert found.container["args"][-1] in found.files


@each_overlay
def test_the_program_accepts_the_configuration_and_the_environment(name: str, tmp_path: Path) -> None:
    found = overlay(name)
    command = [sys.executable, "-m", "olstream", "check", str(found.unpacked(tmp_path)), "--offline"]

    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **found.environment})

    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout and f"slot {ORDINAL} " in done.stdout


@each_overlay
def test_the_environment_is_what_the_configuration_asks_for(name: str) -> None:
    found = overlay(name)

    assert set(re.findall(r"\$\{(\w+)\}", found.files[found.container["args"][-1]])) == found.environment.keys()


@each_overlay
def test_the_model_is_kept_on_the_volume_of_the_slot(name: str, tmp_path: Path) -> None:
    found = overlay(name)
    config = settings(found, tmp_path)
    (claim,) = found.one("StatefulSet")["spec"]["volumeClaimTemplates"]
    (at,) = (m["mountPath"] for m in found.container["volumeMounts"] if m["name"] == claim["metadata"]["name"])

    assert config.slot == ORDINAL
    assert Path(at) == config.checkpoint.path == Path(image.STATE)
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    kept = found.one("StatefulSet")["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert kept == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_production_has_its_secrets_by_reference_only(tmp_path: Path) -> None:
    found = overlay("prod")
    config = settings(found, tmp_path)

    assert found.all("Secret") == []
    assert (config.kafka["sasl.password"], config.http.token) == (SECRET, SECRET)
    assert config.kafka["security.protocol"] == "SASL_SSL"
    (authority,) = (path for path in found.files if path.endswith("ca.crt"))
    assert str(config.kafka["ssl.ca.location"]).endswith(authority)
    (secret,) = (volume["secret"] for volume in found.pod["volumes"] if "secret" in volume)
    (endpoint,) = found.one("ServiceMonitor")["spec"]["endpoints"]
    keys = {item["path"]: item["key"] for item in secret["items"]}
    assert endpoint["authorization"]["credentials"] == {"name": secret["secretName"], "key": keys["http-token"]}


# Ports


@each_overlay
def test_everybody_asks_at_the_port_of_the_program(name: str, tmp_path: Path) -> None:
    found = overlay(name)
    http = settings(found, tmp_path).http
    (port,) = found.one("Service")["spec"]["ports"]
    (ingress,) = found.one("NetworkPolicy")["spec"]["ingress"]

    assert http.host == "0.0.0.0"
    assert http.port == port["port"] == HttpConfig().port == image.PORT
    assert named(found, port["targetPort"]) == named(found, ingress["ports"][0]["port"]) == http.port
    for monitor in found.all("ServiceMonitor"):
        (endpoint,) = monitor["spec"]["endpoints"]
        assert (endpoint["port"], endpoint["path"]) == (port["name"], "/metrics")


def test_a_job_is_a_service_that_the_alerts_know_and_an_instance_is_a_slot() -> None:
    found = overlay("prod")
    (endpoint,) = found.one("ServiceMonitor")["spec"]["endpoints"]
    instance, job = endpoint["relabelings"]
    known = re.search(r'job=~"([^"]+)"', alerts()["OlstreamDown"]["expr"])
    at = found.one("Service")["metadata"]
    meta = {"__meta_kubernetes_namespace": at["namespace"], "__meta_kubernetes_service_name": at["name"]}

    assert (instance["sourceLabels"], instance["targetLabel"]) == (["__meta_kubernetes_pod_name"], "instance")
    assert job["targetLabel"] == "job"
    name = job["separator"].join(meta[label] for label in job["sourceLabels"])
    assert name == "olstream/olstream" and known and re.fullmatch(known[1], name)


@each_overlay
def test_the_policy_lets_kafka_through(name: str) -> None:
    found = overlay(name)
    egress = [port["port"] for rule in found.one("NetworkPolicy")["spec"]["egress"] for port in rule["ports"]]

    assert int(found.environment["OLSTREAM_BOOTSTRAP"].rpartition(":")[2]) in egress and 53 in egress


@each_overlay
def test_the_probes_ask_what_they_mean(name: str) -> None:
    container = overlay(name).container
    asked = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}

    assert {kind: probe["path"] for kind, probe in asked.items()} == {
        "startup": "/live",  # a restore may take as long as it takes
        "liveness": "/live",
        "readiness": "/ready",
    }
    assert {probe["path"] for probe in asked.values()} == set(PROBES)
    assert {named(overlay(name), probe["port"]) for probe in asked.values()} == {image.PORT}


@each_overlay
def test_every_selector_finds_the_pod(name: str) -> None:
    found = overlay(name)
    labels = found.one("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    (spread,) = found.pod["topologySpreadConstraints"]
    selectors = [
        found.one("StatefulSet")["spec"]["selector"]["matchLabels"],
        found.one("Service")["spec"]["selector"],
        found.one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        found.one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        spread["labelSelector"]["matchLabels"],
    ]

    assert all(selector and selector.items() <= labels.items() for selector in selectors)
    assert found.one("StatefulSet")["spec"]["serviceName"] == found.one("Service")["metadata"]["name"]
    for monitor in found.all("ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"]
        assert wanted.items() <= found.one("Service")["metadata"]["labels"].items()


# Rights


@each_overlay
def test_the_pod_may_no_more_than_it_must(name: str) -> None:
    found = overlay(name)
    uid, gid = map(int, image.USER.split(":"))
    pod, container = found.pod["securityContext"], found.container["securityContext"]

    assert pod["runAsNonRoot"] and (pod["runAsUser"], pod["runAsGroup"], pod["fsGroup"]) == (uid, gid, gid)
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert found.pod["automountServiceAccountToken"] is False
    assert found.one("ServiceAccount")["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & found.pod.keys()
    assert {frozenset(volume) - {"name"} for volume in found.pod["volumes"]} <= {
        frozenset({"configMap"}),
        frozenset({"secret"}),
    }


# Times and sizes


@each_overlay
def test_there_is_time_to_stop(name: str, tmp_path: Path) -> None:
    found = overlay(name)
    config = settings(found, tmp_path)
    needed_s = STOP_PATIENCE_S + CALL_S + transaction_timeout_s({**config.kafka, **config.producer}) + WRITE_S

    assert found.pod["terminationGracePeriodSeconds"] >= needed_s


@each_overlay
def test_the_group_waits_longer_than_a_pod_is_away(name: str, tmp_path: Path) -> None:
    found = overlay(name)
    startup = found.container["startupProbe"]
    away_s = found.pod["terminationGracePeriodSeconds"] + startup["periodSeconds"] * startup["failureThreshold"]

    session_ms = number(settings(found, tmp_path).consumer, "session.timeout.ms")
    assert session_ms is not None and session_ms >= away_s * 1000


@each_overlay
def test_the_memory_holds_all_that_may_wait(name: str, tmp_path: Path) -> None:
    found = overlay(name)
    config = settings(found, tmp_path)
    resources = found.container["resources"]

    assert resources["limits"].keys() == {"memory"} and resources["requests"].keys() == {"cpu", "memory"}
    limit = resources["limits"]["memory"]
    size = int(limit[:-2]) * UNITS[limit[-2:]]
    assert size >= PROGRAM_BYTES + len(config.learners) * config.join.pending_bytes_max


# Scaling


def test_scaling_follows_the_group_that_the_pods_form(tmp_path: Path) -> None:
    found = together(tmp_path / "all", "overlays/prod", "components/keda")
    config = settings(found, tmp_path)
    scaled: dict[str, Any] = found.one("ScaledObject")["spec"]
    (trigger,) = scaled["triggers"]

    assert [trigger["metadata"]["topic"]] == config.input.topics
    assert trigger["metadata"]["consumerGroup"] == config.group
    assert trigger["metadata"]["bootstrapServersFromEnv"] in found.environment
    assert trigger["metadata"]["limitToPartitionsWithLag"] == "true"
    assert scaled["scaleTargetRef"]["name"] == found.one("StatefulSet")["metadata"]["name"]
    assert "replicas" not in found.one("StatefulSet")["spec"]


def test_scaling_down_is_slow_and_never_to_nothing(tmp_path: Path) -> None:
    scaled = together(tmp_path / "all", "overlays/dev", "components/keda").one("ScaledObject")["spec"]
    down = scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]

    assert scaled["minReplicaCount"] >= 1
    assert down["stabilizationWindowSeconds"] == 3600
    assert [(policy["type"], policy["value"]) for policy in down["policies"]] == [("Pods", 1)]
