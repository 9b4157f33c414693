"""Checkpoints that were changed on purpose, with checksums that fit: what lies behind the checksums is reached."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import safetensors.numpy

from olstream.checkpoint import MANIFEST, META, Checkpoint, Position, to_files
from olstream.config import parse
from olstream.messages import Chunk, Example
from olstream.model import Model
from olstream.pipeline import Pipeline
from olstream.settings import settings

NAME = "m"
Files = dict[str, bytes]
ALGORITHMS = {
    "arow": "{algorithm: arow, task: binary, classes: [0, 1], scale: standard}",
    "full": "{algorithm: arow, task: binary, params: {covariance: full}}",
    "several": "{algorithm: pa, task: multiclass}",
    "sums": "{algorithm: perceptron, task: multiclass, params: {averaged: true}}",
    "window": "{algorithm: alm_svm, task: binary, params: {window: 20, every: 10}}",
    "regression": "{algorithm: pa1, task: regression}",
}
DETECTORS = "[adwin, kswin, ddm, page_hinkley]"


def text_of(kind: str) -> str:
    """The configuration, but for the path of the state."""
    learner = f"learners: {{{NAME}: {ALGORITHMS[kind]}}}"
    return f"{learner}\nmonitor: {{drift: {DETECTORS}}}\ngroup: g\ninput: {{topics: [events]}}\n"


@cache
def whole(kind: str) -> Mapping[str, bytes]:
    """The files of a checkpoint as they are written: one learner that has seen some rows."""
    config = parse(text_of(kind), "config.yaml", {})
    model = Model(NAME, config.learners[NAME], config.monitor)
    rng = np.random.default_rng(7)
    rows = [
        Example(
            features={"x": float(x), "y": float(y), "colour": "red" if x > 0 else "blue"}, label=_label(kind, x + y)
        )
        for x, y in rng.normal(size=(60, 2))
    ]
    model.predict_then_update(rows)
    Pipeline(config, {NAME: model}).process(_waiting(kind))
    position = Position("L", 5, 7, {("events", 0): 60})
    made = Checkpoint(
        {NAME: model.state()}, {NAME: model.digest()}, position, settings(config), {"group": "g", "slot": 0}
    )
    return to_files(made, "0", "2026-11-30T10:00:00.000+00:00")


def _waiting(kind: str) -> Chunk:
    """Features whose label has not come, labels that came first, and two that met."""
    told: list[dict[str, Any]] = [{"id": i, "features": {"x": i - 2.5, "new": 1, "colour": "red"}} for i in range(6)]
    told += [{"id": f"early {i}", "label": _label(kind, i - 1.0)} for i in range(3)]
    told += [{"id": 0, "label": _label(kind, 0.5)}]
    n = len(told)
    nothing: list[None] = [None] * n
    return Chunk("events", 0, [*range(n)], [*range(n)], [*nothing], [orjson.dumps(one) for one in told], nothing)


def _label(kind: str, x: float) -> Any:
    if kind == "regression":
        return float(x)
    return "abc"[int(x > 0) + int(x > 1)] if kind in ("several", "sums") else int(x > 0)


def parts(files: Mapping[str, bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """The learner's JSON part and its arrays."""
    arrays = dict(safetensors.numpy.load(files[f"{NAME}.safetensors"]))
    return json.loads(arrays.pop(META).tobytes()), arrays


def packed(meta: object, arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    tensors = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    return safetensors.numpy.save({**tensors, META: np.frombuffer(json.dumps(meta).encode(), np.uint8)})


def with_learner(files: Mapping[str, bytes], data: bytes, said_bytes: int | None = None) -> Files:
    """Another file of the learner, and a manifest that vouches for it."""
    manifest = orjson.loads(files[MANIFEST])
    manifest["learners"][NAME] |= {
        "bytes": len(data) if said_bytes is None else said_bytes,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return {**files, f"{NAME}.safetensors": data, MANIFEST: vouched(manifest)}


def with_manifest(files: Mapping[str, bytes], change: Callable[[dict[str, Any]], None]) -> Files:
    manifest = orjson.loads(files[MANIFEST])
    change(manifest)
    return {**files, MANIFEST: vouched(manifest)}


def vouched(manifest: dict[str, Any]) -> bytes:
    """With the checksum that it should have."""
    without = {key: value for key, value in manifest.items() if key != "sha256"}
    checksum = hashlib.sha256(orjson.dumps(without, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return orjson.dumps({**without, "sha256": checksum})


def with_state(files: Mapping[str, bytes], change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Files:
    """Meta and arrays changed in place."""
    meta, arrays = parts(files)
    change(meta, arrays)
    return with_learner(files, packed(meta, arrays))


def written(folder: Path, files: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder
