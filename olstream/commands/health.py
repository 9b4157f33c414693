"""`olstream health`: is the service alive? For container probes, so it starts fast."""

from __future__ import annotations

import urllib.error
import urllib.request

import click

DEFAULT_URL = "http://127.0.0.1:9108"


@click.command()
@click.option("--url", default=DEFAULT_URL, show_default=True, envvar="OLSTREAM_HTTP_URL", show_envvar=True)
@click.option("--ready", is_flag=True, help="Ask for more: restored, and assigned by its group.")
@click.option("--timeout", default=3.0, show_default=True, help="Seconds to wait for the answer.")
@click.pass_context
def command(context: click.Context, url: str, ready: bool, timeout: float) -> None:
    """Exit 0 where the running service is alive, else 1.

    \b
    Example:
      olstream health --url http://127.0.0.1:9108

    Alive: its loop came round lately. A worker that waits for Kafka, or restores its state, is alive:
    a restart would not help it. Ask with --ready before sending it work.
    """
    good, sentence = ask(url.rstrip("/") + ("/ready" if ready else "/live"), timeout)
    click.echo(sentence, err=not good)
    context.exit(0 if good else 1)


def ask(url: str, timeout_s: float) -> tuple[bool, str]:
    """What the probe answers, and its sentence. No proxy is asked: the service is near."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=timeout_s) as answer:
            return True, answer.read(1000).decode("utf-8", "replace").strip()
    except urllib.error.HTTPError as error:
        return False, error.read(1000).decode("utf-8", "replace").strip() or f"{url} answered {error.code}."
    except (OSError, ValueError) as error:
        return False, f"{url} does not answer: {getattr(error, 'reason', error)}."
