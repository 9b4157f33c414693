"""Changed bytes of real checkpoints: loaded, and then they work, or refused in a sentence; never anything else.

Checksums are made to fit in most of them, so that what lies behind is reached. Whatever is accepted has to predict
and learn after that, which is where an index that leads nowhere would show.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from olstream.checkpoint import MANIFEST, Damaged, from_folder
from olstream.config import Config
from olstream.errors import OlstreamError
from olstream.messages import Chunk, Example
from olstream.model import Model
from olstream.pipeline import Pipeline
from olstream.settings import learner_of, monitor_of
from olstream.waiting import Early
from tests.fuzz.examples import examples
from tests.security.forged import (
    ALGORITHMS,
    NAME,
    Files,
    packed,
    parts,
    vouched,
    whole,
    with_learner,
    with_manifest,
    written,
)

JOINS = Config.model_validate({"learners": {NAME: {"algorithm": "pa"}}, "output": {"outcomes": "joined"}})
FILE = f"{NAME}.safetensors"
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 2**31, 2**53, 2**63, 1.5, 1e308, "", "x", "..", "a" * 300, [], {}, [1], {"a": 1},
)  # fmt: skip
NUMBERS = (0.0, -1.0, 1.0, 2.0, 59.0, 2.0**31, -(2.0**40), 2.0**62, 1e-300, 1e300, np.nan, np.inf)


def flipped(rng: random.Random, data: bytes) -> bytes:
    body = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        i, j = rng.randrange(len(body) + 1), rng.randrange(len(body) + 1)
        match rng.randrange(4):
            case 0 if i < len(body):
                body[i] ^= 1 << rng.randrange(8)
            case 1:
                del body[i:]
            case 2:
                body[i:i] = body[j : j + rng.randrange(40)]
            case _:
                del body[i : i + rng.randrange(40)]
    return bytes(body)


def put_somewhere(rng: random.Random, tree: Any) -> None:
    """Another value at a place of a JSON tree."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(tree[key], dict | list) and tree[key] and rng.random() < 0.8:
            tree = tree[key]
            continue
        if rng.random() < 0.2:
            del tree[key]
        else:
            tree[key] = rng.choice(VALUES)
        return


def other_array(rng: random.Random, array: Any) -> Any:
    changed = array.copy()
    match rng.randrange(5):
        case 0 | 1 if changed.size:
            with np.errstate(invalid="ignore"):
                changed.flat[rng.randrange(changed.size)] = np.float64(rng.choice(NUMBERS)).astype(changed.dtype)
            return changed
        case 2:
            return changed.astype(rng.choice([np.float64, np.float32, np.int64, np.int32, np.uint8]))
        case 3:
            return changed[: rng.randrange(len(changed) + 1)] if changed.ndim else changed
        case _:
            return np.concatenate([changed, changed[: rng.randrange(3)]]) if changed.ndim else changed


def forged(rng: random.Random, files: Files) -> Files:
    choice = rng.randrange(10)
    if choice == 0:
        name = rng.choice([FILE, MANIFEST])
        return {**files, name: flipped(rng, files[name])}
    if choice == 1:
        return with_learner(files, flipped(rng, files[FILE]))
    if choice == 2:
        return with_manifest(files, lambda manifest: put_somewhere(rng, manifest))
    meta, arrays = parts(files)
    if choice <= 4:
        put_somewhere(rng, meta)
    else:
        for _ in range(rng.randrange(1, 3)):
            name = rng.choice(sorted(arrays))
            with np.errstate(all="ignore"):
                arrays[name] = other_array(rng, arrays[name])
    return with_learner(files, packed(meta, arrays))


def used(folder: Path) -> str:
    """What became of it: works, damaged or refused."""
    try:
        checkpoint = from_folder(folder)
    except Damaged:
        return "damaged"
    except OlstreamError:
        return "refused"
    for name, (meta, arrays) in checkpoint.states.items():
        try:
            settings = checkpoint.settings
            model = Model.restore(name, learner_of(settings, name), monitor_of(settings), dict(meta), arrays)
        except OlstreamError as error:
            assert "\n" not in str(error) or "mistakes" in str(error)
            return "refused"
        label = 1.0 if model.task == "regression" else model.classes.forms[0] if model.classes else None
        rows = [Example(features={"x": 1.0, "new": i, "colour": "red"}, label=label) for i in range(40)]
        model.predict_then_update(rows)
        json.dumps([model.tally.seen, model.digest()])
        join_all(model, label)
    return "works"


def join_all(model: Model, label: Any) -> None:
    """Whatever waits meets its other half, and all that is said of it is finite."""
    pipeline = Pipeline(JOINS, {NAME: model})
    told = [
        {"id": entry.id, "features": {"x": 1}} if isinstance(entry, Early) else {"id": entry.id, "label": label}
        for entry in model.waiting.entries.values()
    ]
    n = len(told)
    values = [json.dumps(one).encode() for one in [*told, {"features": {"x": 1}}]]
    done = pipeline.process(
        Chunk("events", 0, [*range(n + 1)], [5] * (n + 1), [None] * (n + 1), [*values], [None] * (n + 1))
    )
    for records in done.outgoing:
        for value in records.values:
            said = json.loads(value or b"{}", parse_constant=float)
            assert all(math.isfinite(x) for x in said.values() if isinstance(x, float))


@given(st.integers(0, 2**32), st.sampled_from(sorted(ALGORITHMS)))
@examples(200)
def test_a_forged_checkpoint_is_refused_or_works(tmp_path: Path, seed: int, kind: str) -> None:
    assert used(written(tmp_path / "folder", forged(random.Random(seed), dict(whole(kind))))) in (
        "damaged",
        "refused",
        "works",
    )


def test_what_was_not_changed_works(tmp_path: Path) -> None:
    for kind in ALGORITHMS:
        assert used(written(tmp_path / kind, whole(kind))) == "works"
        assert vouched(json.loads(whole(kind)[MANIFEST])) != b""
