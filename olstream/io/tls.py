"""Why a broker's certificate is not believed: the client library says "could not be verified", and no more."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError as ClientError

from olstream.config import Config
from olstream.properties import for_client

_LOOK_S: Final = 3.0


def explained(config: Config, error: ClientError) -> str:
    """What the client said, and for a certificate what is wrong with it."""
    why = _why_not(config) if error.code() == ClientError._SSL else None
    return f"{error.str()}: {why}" if why else error.str()


def _why_not(config: Config) -> str | None:
    """In OpenSSL's words, such as `certificate has expired`, of the first broker that is named; None: nothing is."""
    given = for_client("admin", config.kafka, {})
    host, _, port = given.get("bootstrap.servers", "").split(",")[0].strip().rpartition(":")
    try:
        context = _context(given.get("ssl.ca.location"), given.get("ssl.ca.pem"))
        with (
            socket.create_connection((host.strip("[]"), int(port)), _LOOK_S) as raw,
            context.wrap_socket(raw, server_hostname=host.strip("[]")),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (OSError, ValueError):  # no answer, no TLS, no such file: the client has said so
        return None


def _context(location: str | None, pem: str | None) -> ssl.SSLContext:
    if pem or location is None or location == "probe":
        return ssl.create_default_context(cadata=pem)
    if Path(location).is_dir():
        return ssl.create_default_context(capath=location)
    return ssl.create_default_context(cafile=location)
