"""Learning again what journal lines name, just as it was learnt the first time; nothing is published.

Recovery, `state verify` and `on_missing: replay` all learn again through here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from olstream import crash
from olstream.checkpoint import Checkpoint, Partition
from olstream.config import Config
from olstream.journal import Line
from olstream.messages import Chunk
from olstream.model import Model
from olstream.pipeline import Pipeline, Processed
from olstream.ports import Inputs
from olstream.route import rivals
from olstream.settings import with_settings


def learn_again(
    lines: Iterable[Line], config: Config, models: Mapping[str, Model], inputs: Inputs, offsets: Mapping[Partition, int]
) -> Iterator[tuple[Chunk, Processed]]:
    """Each chunk of what these lines name, once the models have learnt it; in the order of the lines.

    `offsets`: how far the models had learnt before.
    """
    pipeline = Pipeline(config, models, publishes=False, offsets=offsets)
    for line in lines:
        for wanted in line.ranges:
            crash.point("relearn.before")
            for chunk in inputs.read(wanted, config.input.batch_max):
                yield chunk, pipeline.process(chunk)
            crash.point("relearn.after")
        pipeline.move(line.left, line.adopted, lambda wanted: inputs.read(wanted, config.input.batch_max))


def brought_back(checkpoint: Checkpoint, config: Config) -> tuple[Config, dict[str, Model]]:
    """The models of a checkpoint, and today's configuration but for the settings that they learnt under."""
    then = with_settings(config, dict(checkpoint.settings))
    models = {
        name: Model.restore(name, then.learners[name], then.monitor, dict(meta), dict(arrays))
        for name, (meta, arrays) in checkpoint.states.items()
    }
    return then, models


def under(config: Config, models: Mapping[str, Model]) -> dict[str, Model]:
    """The same states under other settings; a learner that is not configured is left out, and so is a lost rival."""
    found, pairs = {}, rivals(config)
    for name, learner in config.learners.items():
        found[name] = Model.restore(name, learner, config.monitor, *models[name].state())
        found[name].keep_versus(champion for shadow, champion in pairs if shadow == name)
    return found


def committed_of(lines: Iterable[Line], config: Config, inputs: Inputs) -> dict[Partition, int] | None:
    """What tells under at_least_once which lines count: see `journal.lineage_lines`."""
    if config.guarantee == "exactly_once":
        return None
    return inputs.committed(sorted({(r.topic, r.partition) for line in lines for r in line.ranges}))
