"""Messages between two processes over TCP: a line of JSON, with bytes behind it where there are any.

In: a connected socket.
Out: messages, whole and in order.
"""

import json
import select
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

PIECE = 1 << 20  # bytes that are read at once


class Foreign(Exception):
    """The other side does not speak like this."""


@dataclass(frozen=True)
class Message:
    """What one process tells another."""

    kind: str
    document: dict[str, Any] = field(default_factory=dict)
    payload: bytes = b""

    def encode(self) -> bytes:
        """As it travels."""
        head = {"kind": self.kind, "bytes": len(self.payload), "document": self.document}
        return json.dumps(head).encode() + b"\n" + self.payload


class Connection:
    """One connection; any thread may send, one receives."""

    def __init__(self, connected: socket.socket):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket, self._stream = connected, connected.makefile("rb")
        self._sending = threading.Lock()
        self.heard = time.monotonic()  # when something last came

    def set_timeout(self, seconds: float | None) -> None:
        """How long a message may be awaited before that raises TimeoutError."""
        self._socket.settimeout(seconds)

    def send(self, message: bytes) -> None:
        """Sends an encoded message.

        Raises:
            OSError: the connection has ended.
        """
        with self._sending:
            self._socket.sendall(message)

    def send_if_idle(self, message: bytes) -> None:
        """The same, unless something else is being sent, which tells as well that this process lives."""
        if self._sending.acquire(blocking=False):
            try:
                self._socket.sendall(message)
            finally:
                self._sending.release()

    def receive(self) -> Message:
        """The next message.

        Raises:
            EOFError: the other side has ended.
            OSError: the connection has.
            Foreign: what came is no message.
        """
        line = self._stream.readline(PIECE)
        if not line:
            raise EOFError
        try:
            head = json.loads(line)
            kind, size, document = head["kind"], int(head["bytes"]), dict(head["document"])
        except (ValueError, KeyError, TypeError):
            raise Foreign from None
        self.heard = time.monotonic()
        payload = bytearray()
        while len(payload) < size:
            piece = self._stream.read(min(PIECE, size - len(payload)))
            if not piece:
                raise EOFError
            payload += piece
            self.heard = time.monotonic()
        return Message(kind, document, bytes(payload))

    @property
    def has_ended(self) -> bool:
        """Whether the other side has closed it; for one that nobody reads yet."""
        look = select.poll()
        look.register(self._socket, select.POLLIN)
        try:
            return bool(look.poll(0)) and self._socket.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def finish(self) -> None:
        """Says that nothing more is sent; the other side still is read."""
        with suppress(OSError):  # it has ended by itself
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Ends it; whoever waits on it is woken."""
        with suppress(OSError):  # it has ended by itself
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
