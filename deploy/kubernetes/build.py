"""Writes what Kubernetes gets of the rules and dashboards: python deploy/kubernetes/build.py [DIRECTORY]

They are changed in deploy/prometheus and deploy/grafana; kustomize reads no files outside of its own directory.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
RULES = HERE.parent / "prometheus" / "rules.yaml"
DASHBOARDS = HERE.parent / "grafana" / "dashboards"
LABELS = {"app.kubernetes.io/name": "olstream"}


def rule() -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "olstream", "labels": LABELS},
        "spec": yaml.safe_load(RULES.read_text()),
    }


def dashboard(path: Path) -> dict[str, Any]:
    """A ConfigMap as Grafana's sidecar looks for them, without the spaces: `kubectl apply` takes 256 KiB."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"olstream-dashboard-{path.stem}",
            "labels": {**LABELS, "grafana_dashboard": "1"},
            "annotations": {"grafana_folder": "olstream"},
        },
        "data": {path.name: json.dumps(json.loads(path.read_text()), separators=(",", ":"))},
    }


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "components" / "monitoring"
    written = {
        "rules.yaml": [rule()],
        "dashboards.yaml": [dashboard(path) for path in sorted(DASHBOARDS.glob("*.json"))],
    }
    for name, documents in written.items():
        text = yaml.safe_dump_all(documents, sort_keys=False, width=120, allow_unicode=True)
        (directory / name).write_text(
            f"# Written by deploy/kubernetes/build.py: change it there, or its sources.\n{text}"
        )


if __name__ == "__main__":
    main()
