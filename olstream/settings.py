"""Which settings bear on what is learnt: those that a learner is, and those that a checkpoint carries.

`identity` is what a learner is made of: a change there makes its state unreadable, and a person decides.
`settings` is all that decides what a record does to the models; it stands in each checkpoint, so that
records are learnt again under the settings they were learnt under first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import ValidationError

from olstream import mistakes, properties
from olstream.config import Config, FieldsConfig, InputConfig, LearnerConfig, MonitorConfig, validate
from olstream.configfile import File
from olstream.errors import StateError
from olstream.hidden import HIDDEN, USER_IN_URL
from olstream.learners import base
from olstream.section import Section

Json: TypeAlias = dict[str, Any]
SectionT = TypeVar("SectionT", bound=Section)

# Mapped or not, these three are features in `features: "."` unless the file names them.
_OPTIONAL: Final = {"weight", "ts", "learner"}


def identity(config: Config, name: str) -> Json:
    """What the learner of that name is, in full: defaults put in, so that writing one down changes nothing."""
    learner = config.learners[name]
    algorithm = base.algorithm(learner.algorithm)
    return {
        "algorithm": learner.algorithm,
        "task": learner.task,
        "params": algorithm.check(learner.task, learner.params, learner.classes),
        "classes": learner.classes,
        "bias": learner.bias,
        "scale": learner.scale,
        "multiclass": algorithm.reduction(learner.task, learner.multiclass),
        "features": _features(learner),
        "input": {"fields": _fields(config.input.fields), "exclude": sorted(set(config.input.exclude))},
    }


def digest(of: Json) -> str:
    """A short name for an identity or for settings: equal ones give the same."""
    return hashlib.sha256(json.dumps(of, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def settings(config: Config) -> Json:
    """All that decides what a record does to the models, as a configuration file would say it."""
    written: Json = config.model_dump(
        mode="json", by_alias=True, include={"learners": True, "routes": True, "join": True, "monitor": True}
    )
    del written["monitor"]["hindsight"]  # a measure only, no part of the state
    written["input"] = {
        "fields": config.input.fields.model_dump(exclude_unset=True),
        "exclude": config.input.exclude,
        "max_message_bytes": config.input.max_message_bytes,
    }
    return written


def with_settings(config: Config, settings: Json) -> Config:
    """This configuration, but with what `settings` said in its place."""
    stated = {**settings, "input": {**_stated(config.input), **_part(settings, "input")}}
    stated["monitor"] = {**_part(settings, "monitor"), "hindsight": _stated(config)["monitor"]["hindsight"]}
    return validate(File("the checkpoint's settings", {**_stated(config), **stated}))


def same(settings: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether they make of records the same. The order of the learners counts: the first one is the default."""
    return settings == others and list(settings.get("learners", ())) == list(others.get("learners", ()))


def redacted(config: Config) -> Json:
    """The whole configuration as a file would say it, for logs and people: secrets hidden."""
    written = _stated(config)
    for section in ("kafka", "consumer", "producer"):
        for name, value in written[section].items():
            hides = properties.is_secret(name)
            written[section][name] = (
                HIDDEN if hides else USER_IN_URL.sub(HIDDEN, value) if isinstance(value, str) else value
            )
    if written["http"]["token"] is not None:
        written["http"]["token"] = HIDDEN
    return written


def learner_of(settings: Mapping[str, Any], name: str) -> LearnerConfig:
    """One learner of a checkpoint; that of a lone learner, saved outside any service, stands by itself."""
    return _section(LearnerConfig, settings.get("learner") or _part(_part(settings, "learners"), name))


def monitor_of(settings: Mapping[str, Any]) -> MonitorConfig:
    return _section(MonitorConfig, _part(settings, "monitor"))


def differences(old: Json, new: Json) -> list[str]:
    """Each setting that differs, as `params.r: 1.0 -> 2.0`, in the order of their names."""
    before, after = dict(_leaves(old, "")), dict(_leaves(new, ""))
    return [f"{key}: {_shown(before, key)} -> {_shown(after, key)}" for key in changed(old, new)]


def changed(old: Json, new: Json) -> list[str]:
    """The names of the settings that differ, in order."""
    before, after = dict(_leaves(old, "")), dict(_leaves(new, ""))
    keys = sorted(before.keys() | after.keys())
    return [key for key in keys if _shown(before, key) != _shown(after, key)]


def _part(settings: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = settings.get(key)
    if not isinstance(found, Mapping):
        raise StateError(f"the checkpoint's settings say nothing of {key}: move that checkpoint away")
    return found


def _section(kind: type[SectionT], stated: Mapping[str, Any]) -> SectionT:
    try:
        return kind.model_validate(stated)
    except ValidationError as error:
        raise mistakes.config_error(error, kind, File("the checkpoint's settings")) from None


def _stated(section: Config | InputConfig) -> Json:
    return section.model_dump(mode="json", by_alias=True)


def _features(learner: LearnerConfig) -> Json:
    written: Json = learner.features.model_dump(mode="json")
    written["category"] = sorted(set(written["category"]))
    return written


def _fields(fields: FieldsConfig) -> Json:
    """The paths; with the whole message as features also which of the optional ones the file maps."""
    written: Json = fields.model_dump()
    if fields.features == ".":
        written["mapped"] = sorted(_OPTIONAL & fields.model_fields_set)
    return written


def _leaves(tree: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _shown(leaves: Mapping[str, Any], key: str) -> str:
    return json.dumps(leaves[key], ensure_ascii=False) if key in leaves else "(not there)"
