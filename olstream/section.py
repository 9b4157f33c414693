"""What every mapping of the configuration file is made of."""

from __future__ import annotations

from pydantic import AliasGenerator, BaseModel, ConfigDict, model_validator


def _as_written(name: str) -> str:
    """The key in the file: a duration carries its own unit there."""
    return name.removesuffix("_s")


class Section(BaseModel):
    """A mapping of the file: its keys are closed, and a key with nothing under it means the defaults."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        validate_by_name=True,
        validate_by_alias=True,
        alias_generator=AliasGenerator(validation_alias=_as_written, serialization_alias=_as_written),
        use_attribute_docstrings=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _nothing_under_it(cls, data: object) -> object:
        return {} if data is None else data
