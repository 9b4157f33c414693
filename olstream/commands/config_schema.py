"""`olstream config-schema`: the JSON Schema of the configuration, for editors."""

from __future__ import annotations

import json

import click

from olstream.schema import json_schema


@click.command()
def command() -> None:
    """Print the JSON Schema of the configuration, which editors use to complete and check it.

    \b
    Example:
      olstream config-schema > olstream.schema.json
      (then, as the first line of the configuration: # yaml-language-server: $schema=olstream.schema.json)
    """
    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
