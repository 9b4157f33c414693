"""What the Dockerfile says of the image that compose.yaml and the manifests run."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
NAME = f"ghcr.io/olstream/olstream:{VERSION}"


def said(instruction: str) -> str:
    """The last word of the Dockerfile on it."""
    found = re.findall(rf"(?m)^{instruction} (.+)$", DOCKERFILE)
    assert found, f"the Dockerfile has no {instruction}"
    return str(found[-1])


USER = said("USER")
PORT = int(said("EXPOSE"))
STATE = said("VOLUME")
ENTRYPOINT: list[str] = json.loads(said("ENTRYPOINT"))
COMMAND: list[str] = json.loads(said("CMD"))
