"""Stands between clients and one node, and does what networks do: delays, stalls one direction, cuts.

Of Kafka it knows where a message begins, and of which kind a request is, so that a connection can be
stalled at the very request, or the very answer, that matters.
"""

from __future__ import annotations

import socket
import struct
import time
from contextlib import suppress
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias

Direction: TypeAlias = Literal["request", "answer"]

# Kinds of requests that a worker makes.
PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 0, 1, 2, 3, 8, 9, 10
JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 11, 12, 14
INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 28
CONSUMER_GROUP_HEARTBEAT: Final = 68
KINDS: Final = (
    *(PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR),
    *(JOIN_GROUP, HEARTBEAT, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT),
    *(INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT),
)


class Hold:
    """Stalls each connection from its first message of a kind on, in one direction, until all of them are let go."""

    def __init__(self, direction: Direction, kind: int | None = None, until: int | None = None) -> None:
        """Without a kind the first message of any kind is one. Catches no more once there is a request like `until`."""
        self.caught = Event()
        self._direction, self._kind, self._until = direction, kind, until
        self._catches = True
        self._over = Event()

    def stall(self, direction: Direction, kind: int | None) -> None:
        if direction == "request" and self._until is not None and kind == self._until:
            self._catches = False
        if self._catches and direction == self._direction and self._kind in (None, kind):
            self.caught.set()
            self._over.wait()

    def let_go(self) -> None:
        self._catches = False
        self._over.set()


class Proxy:
    """Listens at `port` as if it were the node at `target`."""

    def __init__(self, port: int, target: int) -> None:
        self.bootstrap = f"127.0.0.1:{port}"
        self.delay_s = 0.0  # of each message, one after the other
        self._target = target
        self._hold = Hold("request")
        self._hold.let_go()
        self._open: set[socket.socket] = set()
        self._lock = Lock()
        self._listener = socket.create_server(("127.0.0.1", port))
        Thread(target=self._accept, name="proxy", daemon=True).start()

    def hold(self, direction: Direction, kind: int | None = None, until: int | None = None) -> Hold:
        """There is one hold at a time; the one before is over."""
        self._hold.let_go()
        self._hold = Hold(direction, kind, until)
        return self._hold

    def cut(self) -> None:
        """Every connection ends, as if its cable was pulled."""
        with self._lock:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends a waiting accept, which close alone does not
        self._listener.close()
        self.cut()
        self._hold.let_go()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                Thread(target=self._serve, args=(client,), name="proxied", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        kinds: dict[int, int] = {}  # of requests that are not answered yet, by their number
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._target)) as node:
            with self._lock:
                self._open |= {client, node}
            answers = Thread(target=self._pass_on, args=(node, client, "answer", kinds), name="answers", daemon=True)
            answers.start()
            self._pass_on(client, node, "request", kinds)
            answers.join()
            with self._lock:
                self._open -= {client, node}

    def _pass_on(self, source: socket.socket, sink: socket.socket, direction: Direction, kinds: dict[int, int]) -> None:
        with suppress(OSError):
            while message := _message(source):
                time.sleep(self.delay_s)
                self._hold.stall(direction, _kind(message, direction, kinds))
                sink.sendall(message)
        for each in source, sink:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _message(source: socket.socket) -> bytes:
    """The next one with its length before it; empty where the connection ended."""
    head = _exactly(source, 4)
    body = _exactly(source, int.from_bytes(head)) if head else b""
    return head + body if body else b""


def _exactly(source: socket.socket, n: int) -> bytes:
    parts, left = [], n
    while left:
        part = source.recv(left)
        if not part:
            return b""
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _kind(message: bytes, direction: Direction, kinds: dict[int, int]) -> int | None:
    if direction == "answer":
        (number,) = struct.unpack_from(">i", message, 4)
        return kinds.pop(number, None)
    kind, _version, number = struct.unpack_from(">hhi", message, 4)
    kinds[number] = kind
    return int(kind)
