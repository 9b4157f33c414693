"""The pod of deploy/kubernetes as a container: image, command, environment, mounts and rights of the rendered manifest.

Only Kafka's address, the names and the port are a test's own. Kubernetes itself is not here.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
import uuid
from typing import Any

import pytest
import yaml

from tests.container.engine import Engine
from tests.deploy.cluster import ORDINAL, SECRET, Rendered, overlay
from tests.kafka.events import events
from tests.kafka.service import START_S, Service, ServiceFactory
from tests.kafka.topics import until


def written(found: Rendered, service: Service) -> list[str]:
    """The files that the pod mounts, as a volume with `fsGroup` has them: root's, readable by the group; as options."""
    group = found.pod["securityContext"]["fsGroup"]
    options = []
    for target, text in found.files.items():
        path = service.directory / target.lstrip("/").replace("/", "-")
        path.write_text(reached(text, service) if target == found.container["args"][-1] else text)
        os.chown(path, 0, group)
        path.chmod(0o440)
        options.append(f"--volume={path}:{target}:ro")
    service.state.mkdir()
    os.chown(service.state, 0, group)
    service.state.chmod(0o2775)
    (state,) = (each["mountPath"] for each in found.container["volumeMounts"] if each["name"] == "state")
    return [*options, f"--volume={service.state}:{state}"]


def reached(text: str, service: Service) -> str:
    """The configuration with the broker and the names of a test."""
    config: dict[str, Any] = yaml.safe_load(text)
    config["kafka"] = {"bootstrap.servers": "${OLSTREAM_BOOTSTRAP}"}
    config["group"] = service.group
    config["input"] = {**config["input"], "topics": [service.input]}
    config["output"] = {"predictions": service.predictions, "dead_letters": service.dead_letters}
    config["http"]["port"] = service.config["http"]["port"]
    del config["learners"]["model"]["classes"]  # those of the test's events are others
    return yaml.safe_dump(config)


def confined(found: Rendered) -> list[str]:
    """What the pod's security context means to podman."""
    pod, container = found.pod["securityContext"], found.container["securityContext"]
    assert container["readOnlyRootFilesystem"] and not container["allowPrivilegeEscalation"]
    return [
        *("--read-only", "--read-only-tmpfs=false", "--security-opt=no-new-privileges"),
        *(f"--cap-drop={capability.lower()}" for capability in container["capabilities"]["drop"]),
        *(f"--user={pod['runAsUser']}:{pod['runAsGroup']}", f"--group-add={pod['fsGroup']}"),
        f"--memory={found.container['resources']['limits']['memory'].removesuffix('i').lower()}",
    ]


def asked(url: str, token: str | None = None) -> int | None:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


@pytest.fixture
def work(service: ServiceFactory) -> Service:
    return service().make_topics()


def test_the_pod_of_production_answers_its_probes_works_and_stops_in_time(
    engine: Engine, image: str, work: Service
) -> None:
    found = overlay("prod")
    assert found.container["image"] == image
    work.topics.produce(work.input, events(100))
    name = f"olstream-{uuid.uuid4().hex[:12]}"
    environment = {**found.environment, "OLSTREAM_BOOTSTRAP": work.topics.bootstrap}
    grace_s = int(found.pod["terminationGracePeriodSeconds"])
    at = f"http://127.0.0.1:{work.config['http']['port']}"
    probes = {kind: at + found.container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness")}

    engine.will_run(name)
    engine.podman(
        *("run", "--detach", f"--name={name}", "--network=host", *confined(found), *written(found, work)),
        *(f"--env={key}={value}" for key, value in environment.items()),
        *(image, *found.container["args"]),
    )
    budget_s = found.container["startupProbe"]["periodSeconds"] * found.container["startupProbe"]["failureThreshold"]
    until(lambda: asked(probes["startup"]) == 200, "it has started", budget_s)
    until(lambda: asked(probes["readiness"]) == 200, "it is ready", START_S)
    until(lambda: work.committed() == 100, "100 records done")
    pages = {who: asked(f"{at}/metrics", who) for who in (None, "wrong", SECRET)}
    engine.podman("stop", f"--time={grace_s}", name, deadline_s=grace_s + 30)

    assert pages == {None: 401, "wrong": 401, SECRET: 200}
    assert engine.about("container", name)["State"]["ExitCode"] == 0
    assert (work.state / work.group / str(ORDINAL)).is_dir()
    assert len(work.predicted()) == 100
