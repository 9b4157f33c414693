"""The compose file is well formed, confined, and agrees with the program, the image and what it mounts.

That it teaches something is in tests/kafka/test_compose.py.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from olstream.config import Config, HttpConfig, load
from tests.deploy import image
from tests.deploy.compose import CONFIG_TARGET, FILE, OURS, SERVICES, Service, compose, environment_of, file
from tests.deploy.prometheus import CONFIG, DEPLOY, RULES, promtool

service_by_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES.keys())
POM = Path(__file__).parents[1] / "kafka" / "pom.xml"


def judged(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(command, capture_output=True, text=True)


def settings(service: Service) -> Config:
    return load(service.mounted(CONFIG_TARGET), service.environment)


# The file


def test_it_keeps_to_the_schema_of_compose() -> None:
    done = judged(FILE)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("right", "wrong"), [("read_only:", "readonly:"), ("condition: service_healthy", "when: up")])
def test_a_slip_would_be_seen(tmp_path: Path, right: str, wrong: str) -> None:
    text = FILE.read_text()
    assert right in text

    (tmp_path / "compose.yaml").write_text(text.replace(right, wrong))

    assert judged(tmp_path / "compose.yaml").returncode == 1


def test_compose_itself_reads_it_as_these_tests_do() -> None:
    command = [*compose(), "--file", str(FILE), "config", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 0 and not done.stderr, done.stderr
    found = json.loads(done.stdout.replace("$$", "$"))["services"]
    assert found.keys() == SERVICES.keys()
    for name, service in SERVICES.items():
        assert (found[name]["command"] or []) == service.command
        assert found[name].get("environment", {}) == service.environment
        assert [(each["target"], each.get("read_only", False)) for each in found[name].get("volumes", [])] == [
            (mount.target, mount.read_only) for mount in service.mounts
        ]
        ports = [f"{each['host_ip']}:{each['published']}:{each['target']}" for each in found[name].get("ports", [])]
        assert ports == service.said.get("ports", [])


@service_by_service
def test_an_image_is_pinned(service: Service) -> None:
    assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", service.said["image"])


def test_images_are_those_that_we_make_and_test_with() -> None:
    assert {service.said["image"] for service in OURS} == {image.NAME}
    kafka = re.search(r"<kafka\.version>(.+)</kafka\.version>", POM.read_text())
    assert kafka and SERVICES["kafka"].said["image"] == f"apache/kafka:{kafka[1]}"


@service_by_service
def test_a_service_waits_for_what_it_needs(service: Service) -> None:
    for name, condition in service.said.get("depends_on", {}).items():
        needed = SERVICES[name].said
        if condition["condition"] == "service_healthy":
            assert needed["healthcheck"]["test"][0] == "CMD"
        else:
            assert condition["condition"] == "service_completed_successfully" and "restart" not in needed


# Confined


@service_by_service
def test_a_service_may_no_more_than_it_must(service: Service) -> None:
    said = service.said

    assert said["cap_drop"] == ["ALL"] and said["security_opt"] == ["no-new-privileges:true"]
    assert re.fullmatch(r"[1-9]\d*:\d+", said["user"])
    assert not {"privileged", "cap_add", "devices", "network_mode", "pid"} & said.keys()
    assert said.get("read_only", False) is (service.name != "kafka")


@service_by_service
def test_a_port_is_open_to_this_machine_only(service: Service) -> None:
    for port in service.said.get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port)


@service_by_service
def test_nothing_is_secret(service: Service) -> None:
    assert not [name for name in service.environment if re.search(r"(?i)passw|secret|token|api_?key", name)]


# What it mounts


@service_by_service
def test_what_is_mounted_is_there_and_stays_as_it_is(service: Service) -> None:
    for mount in service.mounts:
        if mount.path is None:
            assert mount.source in file()["volumes"] and not mount.read_only
        else:
            assert mount.path.exists() and mount.read_only, mount


def test_every_volume_is_used() -> None:
    used = {mount.source for service in SERVICES.values() for mount in service.mounts if mount.path is None}

    assert used == file()["volumes"].keys()


# What agrees with the program


@pytest.mark.parametrize("service", OURS, ids=lambda service: service.name)
def test_the_configuration_is_a_good_one(service: Service) -> None:
    command = [sys.executable, "-m", "olstream", "check", str(service.mounted(CONFIG_TARGET)), "--offline"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment_of(service))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout


def test_the_service_is_run_as_the_image_would() -> None:
    service = SERVICES["olstream"]

    assert service.command == image.COMMAND
    assert {ours.said["user"] for ours in OURS} == {image.USER}
    assert settings(service).checkpoint.path == Path(image.STATE)
    assert [mount.target for mount in service.mounts if mount.path is None] == [image.STATE]


def test_the_page_is_where_everybody_looks_for_it() -> None:
    http = settings(SERVICES["olstream"]).http

    assert http.port == HttpConfig().port == image.PORT
    assert http.host == "0.0.0.0"
    assert SERVICES["olstream"].said["ports"] == [f"127.0.0.1:{http.port}:{http.port}"]


def test_the_clients_know_where_kafka_listens() -> None:
    kafka = SERVICES["kafka"].environment
    listeners = dict(each.split("://") for each in kafka["KAFKA_LISTENERS"].split(","))
    advertised = dict(each.split("://") for each in kafka["KAFKA_ADVERTISED_LISTENERS"].split(","))

    assert {service.environment["OLSTREAM_BOOTSTRAP"] for service in OURS} == {advertised["INSIDE"]}
    assert advertised["INSIDE"] == "kafka" + listeners["INSIDE"]
    assert SERVICES["kafka"].said["ports"] == [f"127.0.0.1{listeners['OUTSIDE']}{listeners['OUTSIDE']}"]
    assert kafka["KAFKA_CONTROLLER_QUORUM_VOTERS"] == f"1@kafka{listeners['CONTROLLER']}"
    assert [mount.target for mount in SERVICES["kafka"].mounts] == [kafka["KAFKA_LOG_DIRS"]]


def test_the_time_to_stop_is_that_of_the_cluster_too() -> None:
    pod = yaml.safe_load((DEPLOY / "kubernetes" / "base" / "statefulset.yaml").read_text())["spec"]["template"]["spec"]

    assert SERVICES["olstream"].said["stop_grace_period"] == f"{pod['terminationGracePeriodSeconds']}s"


# What agrees with Prometheus and Grafana


def test_prometheus_takes_what_it_is_given(tmp_path: Path) -> None:
    service = SERVICES["prometheus"]
    for mount in service.mounts:
        if mount.path is not None:
            shutil.copy(mount.path, tmp_path / Path(mount.target).name)

    code, said = promtool("check", "config", tmp_path / "prometheus.yml")

    assert (code, "rules found" in said) == (0, True), said
    assert service.mounted("/etc/prometheus/prometheus.yml") == CONFIG
    assert service.mounted("/etc/prometheus/rules.yaml") == RULES
    assert "--config.file=/etc/prometheus/prometheus.yml" in service.command


def test_prometheus_scrapes_the_service() -> None:
    (job,) = yaml.safe_load(CONFIG.read_text())["scrape_configs"]

    assert job["static_configs"] == [{"targets": [f"olstream:{image.PORT}"]}]


def test_grafana_finds_the_data_and_the_dashboards() -> None:
    grafana = SERVICES["grafana"]
    provisioning = grafana.mounted("/etc/grafana/provisioning")
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "olstream.yaml").read_text())["providers"]
    home = Path(grafana.environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])

    assert source["url"] == f"http://prometheus:{SERVICES['prometheus'].said['ports'][0].split(':')[-1]}"
    dashboards = grafana.mounted(provider["options"]["path"])
    assert list(dashboards.glob("*.json"))
    assert (grafana.mounted(str(home.parent)) / home.name).is_file()
