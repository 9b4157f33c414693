"""The log: one line an event on stderr, as text or JSON, and no line over and over.

What stands in `extra` becomes a field, but for `every_s`, which says how often a message may come:

    log.info("checkpoint written", extra={"seq": 5})
    log.warning("no broker", extra={"every_s": 10.0})    at most once in 10 s, with the count left out
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final, TextIO

import orjson

from olstream.config import LogConfig
from olstream.hidden import hide

ROOT: Final = "olstream"
LIBRDKAFKA: Final = f"{ROOT}.librdkafka"
LIBRDKAFKA_EVERY_S: Final = 30.0
REMEMBERED_MAX: Final = 256  # messages that the limiter knows at a time
OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "every_s", "same_as"}


def setup(config: LogConfig, stream: TextIO | None = None) -> None:
    """Send everything of olstream to stderr in the configured form. May be called again."""
    handler: logging.Handler = logging.StreamHandler(stream) if stream is not None else _Stderr()
    handler.setFormatter(JsonLines() if config.format == "json" else TextLines())
    handler.addFilter(Payloads())
    handler.addFilter(Repeats())
    root = logging.getLogger(ROOT)
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(config.level.upper())
    root.propagate = False


class _Stderr(logging.Handler):
    """sys.stderr as it is at each line: whoever swapped it for a while may have closed what it was."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


def librdkafka() -> logging.Logger:
    """The logger to give to confluent-kafka's clients."""
    logger = logging.getLogger(LIBRDKAFKA)
    if not any(isinstance(present, _Librdkafka) for present in logger.filters):
        logger.addFilter(_Librdkafka())
    return logger


class _Librdkafka(logging.Filter):
    """librdkafka repeats itself for each broker and each try: lines that differ in digits alone are one."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.every_s = LIBRDKAFKA_EVERY_S
        record.same_as = re.sub(r"\d+", "#", record.getMessage())[:300]
        return True


class Payloads(logging.Filter):
    """What users sent is for debugging only: bytes at other levels are told by their length."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.DEBUG:
            if isinstance(record.args, tuple):
                record.args = tuple(map(_hidden, record.args))
            for name in _extra(record):
                setattr(record, name, _hidden(getattr(record, name)))
        return True


def _hidden(value: Any) -> Any:
    return f"<{len(value)} bytes>" if isinstance(value, bytes | bytearray | memoryview) else value


@dataclass(slots=True)
class _Said:
    at_s: float
    left_out: int = 0


class Repeats(logging.Filter):
    """Lets a record with `every_s` through once in that time, and counts the others into the next."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._said: OrderedDict[tuple[str, int, str], _Said] = OrderedDict()
        self._lock = Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        every_s = getattr(record, "every_s", None)
        if every_s is None:
            return True
        key = (record.name, record.levelno, str(getattr(record, "same_as", record.msg)))
        with self._lock:
            return self._is_due(key, every_s, record)

    def _is_due(self, key: tuple[str, int, str], every_s: float, record: logging.LogRecord) -> bool:
        said, now_s = self._said.get(key), self._monotonic()
        if said is not None and now_s < said.at_s + every_s:
            said.left_out += 1
            return False
        if said is not None and said.left_out:
            record.left_out = said.left_out
        self._said[key] = _Said(now_s)
        self._said.move_to_end(key)
        if len(self._said) > REMEMBERED_MAX:
            self._said.popitem(last=False)
        return True


def _extra(record: logging.LogRecord) -> list[str]:
    return [name for name in vars(record) if name not in OWN]


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonLines(logging.Formatter):
    """{"time", "level", "logger", "message", fields ...}; an exception as a list of lines."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line = {**line, **{name: getattr(record, name) for name in _extra(record)}, **line}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info).splitlines()
        try:
            return hide(orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode())
        except TypeError:  # half a surrogate pair, or a number past 64 bits
            return hide(json.dumps(line, default=str))


class TextLines(logging.Formatter):
    """time level logger: message field=value ...; only an exception takes more than one line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={getattr(record, name)}" for name in _extra(record))
        text = f"{record.getMessage()}{fields}".replace("\r", "\\r").replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname.lower():7} {record.name}: {text}"
        return hide(f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line)
