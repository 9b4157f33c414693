"""The Kubernetes manifests as the real kustomize renders them, and what the program would find in a pod."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.prometheus import DEPLOY

KUBERNETES = DEPLOY / "kubernetes"
ORDINAL = 2  # of the pod that the tests look into
SECRET = "a-secret-value"


def kustomize() -> list[str]:
    """The command that renders; without it a skip, and a failure where CI=true."""
    for tool, verb in (("kustomize", "build"), ("kubectl", "kustomize")):
        if found := shutil.which(tool):
            return [found, verb]
    missing = "neither kustomize nor kubectl is installed: .ci/run fetches the first from Debian 13"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


@dataclass(frozen=True)
class Rendered:
    """What `kubectl apply -k` would send."""

    objects: list[dict[str, Any]]

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        (found,) = self.all(kind)
        return found

    @property
    def pod(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.one("StatefulSet")["spec"]["template"]["spec"]
        return spec

    @property
    def container(self) -> dict[str, Any]:
        (found,) = self.pod["containers"]
        return dict(found)

    @property
    def files(self) -> dict[str, str]:
        """{path in the container: text} of the ConfigMap and the Secret."""
        return dict(self._files())

    def _files(self) -> Iterator[tuple[str, str]]:
        maps = {each["metadata"]["name"]: each["data"] for each in self.all("ConfigMap")}
        mounted = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}
        for volume in self.pod["volumes"]:
            at = mounted[volume["name"]]
            if "configMap" in volume:
                yield from ((f"{at}/{name}", text) for name, text in maps[volume["configMap"]["name"]].items())
            else:
                yield from ((f"{at}/{item['path']}", f"{SECRET}\n") for item in volume["secret"]["items"])

    @property
    def environment(self) -> dict[str, str]:
        """As the pod with that ordinal gets it; every secret is the same."""
        return dict(self._environment())

    def _environment(self) -> Iterator[tuple[str, str]]:
        for variable in self.container["env"]:
            source = variable.get("valueFrom", {})
            if "fieldRef" in source:
                assert source["fieldRef"]["fieldPath"] == "metadata.labels['apps.kubernetes.io/pod-index']"
            assert source.keys() <= {"fieldRef", "secretKeyRef"}
            yield variable["name"], variable.get("value") or (str(ORDINAL) if "fieldRef" in source else SECRET)

    def unpacked(self, directory: Path) -> Path:
        """Write the files of the container under a directory, paths in them following; the configuration's path."""
        roots = [mount["mountPath"] for mount in self.container["volumeMounts"] if mount.get("readOnly")]
        for path, text in self.files.items():
            for root in roots:
                text = text.replace(root, f"{directory}{root}")
            here = directory / path.lstrip("/")
            here.parent.mkdir(parents=True, exist_ok=True)
            here.write_text(text)
        return directory / str(self.container["args"][-1]).lstrip("/")


def rendered(directory: Path) -> Rendered:
    done = subprocess.run([*kustomize(), str(directory)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr  # deprecated fields are told there
    return Rendered(list(yaml.safe_load_all(done.stdout)))


@cache
def overlay(name: str) -> Rendered:
    return rendered(KUBERNETES / "overlays" / name)


def together(directory: Path, *parts: str) -> Rendered:
    """A kustomization of our overlays and components, as a user would write one."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [os.path.relpath((KUBERNETES / part).resolve(), directory.resolve()) for part in parts]
    text = {"resources": paths[:1], "components": paths[1:]}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(text))
    return rendered(directory)
