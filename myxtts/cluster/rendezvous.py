"""How the processes of a cluster find each other, before any of them loads TensorFlow.

In: `Members`; what has to be equal everywhere.
Out: a `Cluster`, or one line on every rank that says who is missing or what differs.

Rank 0 listens at its own address, the others come to it. Then each tries the address of the next one, because the ring
of an all-reduce goes there. The ports are TensorFlow's afterwards.
"""

import errno
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

from myxtts.cluster.cluster import Cluster, first_difference
from myxtts.cluster.connection import Connection, Foreign, Message
from myxtts.cluster.members import Members, split_address
from myxtts.errors import RunError, UsageError

PATIENCE_SECONDS = 120.0  # for a process that has not come
UNREACHABLE_SECONDS = 20.0  # for an address that no way leads to, unless more patience was asked for
HELLO_SECONDS = 5.0
BACKLOG = 4096
LOOK_SECONDS = 0.25
MARGIN_SECONDS = 5.0  # that the others wait longer than rank 0, so that it can tell them why
HELLO, WELCOME, REFUSED, REACHED, READY = "hello", "welcome", "refused", "reached", "ready"


@dataclass(frozen=True)
class Greeting:
    """What a process says of itself."""

    versions: Mapping[str, str]
    settings: Mapping[str, Any]  # by key; those of them that rank 0 has, too, must be equal
    host: str = field(default_factory=socket.gethostname)

    @property
    def equal(self) -> dict[str, Any]:
        """All that must be equal."""
        return {**self.versions, **self.settings}


def join(
    members: Members,
    greeting: Greeting,
    say: Callable[[str], None],
    patience: float | None = None,
    anyone: bool = False,
) -> Cluster | None:
    """Meets the other processes.

    Args:
        members: who is meant to come.
        greeting: of this process.
        say: told who is waited for and who has come.
        patience: seconds to wait for all of them.
        anyone: whether those who have come by then go on without the rest; None where that is this process alone.

    Raises:
        UsageError: the processes differ, two have the same rank, or an address cannot be this process's.
        RunError: one did not come, or cannot be reached.
    """
    meeting = _Meeting(members, greeting, say, patience, anyone)
    with closing(meeting.listen()) as listener:
        if not anyone:
            return meeting.lead(listener) if members.rank == 0 else meeting.follow(0)
        for leader in range(members.rank):
            with suppress(RunError):  # it has not come back: the next one leads
                return meeting.follow(leader)
        return meeting.lead(listener)


def _listen(port: int) -> socket.socket:
    """Holds a port in every network of the machine."""
    try:
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise
        return socket.create_server(("", port), backlog=BACKLOG)  # a machine without IPv6


def tell_failure(members: Members, error: UsageError | RunError) -> None:
    """Tells the other processes why this one does not come; takes a few seconds, in which they may come to be told."""
    _Meeting(members, Greeting({}, {}), lambda line: None, HELLO_SECONDS, False).tell_failure(error)


def _hear_hello(connection: Connection, heard: "queue.SimpleQueue[tuple[Connection, Message]]") -> None:
    """Waits for what somebody says who has connected; a port scanner says nothing, or something else."""
    connection.set_timeout(HELLO_SECONDS)
    try:
        heard.put((connection, connection.receive()))
    except (EOFError, OSError, Foreign):
        connection.close()


class _Meeting:
    """One try to meet."""

    def __init__(
        self,
        members: Members,
        greeting: Greeting,
        say: Callable[[str], None],
        patience: float | None,
        anyone: bool,
    ):
        self._members, self._greeting, self._say, self._anyone = members, greeting, say, anyone
        self._patience = PATIENCE_SECONDS if patience is None else patience
        self._unreachable = min(UNREACHABLE_SECONDS, self._patience) if patience is None else patience

    def _address(self, rank: int) -> str:
        return f"rank {rank} ({self._members.addresses[rank]})"

    def listen(self) -> socket.socket:
        """Holds this process's port.

        Raises:
            RunError: somebody else has it; if that is of our cluster, all its processes are told.
        """
        rank = self._members.rank
        host, port = split_address(self._members.addresses[rank])
        try:
            return _listen(port)
        except OSError as error:
            problem, in_use = error.strerror, error.errno == errno.EADDRINUSE
        if not in_use:
            raise RunError(f"port {port}, of rank {rank}: {problem}; choose another port")
        with suppress(OSError, RunError):
            first = socket.create_connection(split_address(self._members.addresses[0]), timeout=HELLO_SECONDS)
            with closing(Connection(first)) as connection:
                self._say_hello(connection)
                self._hear(connection, 0, REFUSED)
        raise RunError(
            f"port {port} of this machine is in use, by another program or another process of rank {rank}; end that, "
            f"or give {host} another port"
        )

    # Rank 0

    def lead(self, listener: socket.socket) -> Cluster | None:
        """Waits for all others, compares them, lets them try each other's addresses."""
        come: dict[int, tuple[Connection, str]] = {}
        try:
            self._collect(listener, come)
            ranks = (self._members.rank, *sorted(come))
            addresses = tuple(self._members.addresses[rank] for rank in ranks)
            hosts = (self._greeting.host, *(come[rank][1] for rank in ranks[1:]))
            if len(ranks) == 1:
                return None
            told = {"addresses": addresses, "hosts": hosts}
            for place, rank in enumerate(ranks[1:], 1):
                come[rank][0].send(Message(WELCOME, {**told, "rank": place}).encode())
            problems = [self._try_next(addresses, 0)]
            for rank in ranks[1:]:
                problems.append(self._hear(come[rank][0], rank, REACHED).document["problem"])
            if any(problems):
                raise RunError(next(filter(None, problems)))
            for rank in ranks[1:]:
                come[rank][0].send(Message(READY).encode())
        except (UsageError, RunError) as error:
            self._refuse(come, error)
            raise
        except BaseException as error:
            self._refuse(come, RunError(f"{self._address(self._members.rank)} was ended by {error!r:.200}"))
            raise
        connections = {place: come[rank][0] for place, rank in enumerate(ranks[1:], 1)}
        return self._start(addresses, 0, connections, hosts)

    def _collect(self, listener: socket.socket, come: dict[int, tuple[Connection, str]]) -> None:
        """Takes the processes in as they come, until all are here or the time is over."""
        missing = set(range(self._members.size)) - {self._members.rank}
        if self._anyone:
            missing -= set(range(self._members.rank))  # this process leads because they have not come
        deadline = time.monotonic() + self._patience
        listener.settimeout(LOOK_SECONDS)
        if missing:
            self._say(f"🌐 Waiting for {', '.join(self._address(rank) for rank in sorted(missing))}")
        heard: queue.SimpleQueue[tuple[Connection, Message]] = queue.SimpleQueue()
        while missing and time.monotonic() < deadline:
            with suppress(TimeoutError):
                connection = Connection(listener.accept()[0])
                threading.Thread(target=_hear_hello, args=(connection, heard), daemon=True).start()
            while not heard.empty():
                found = self._take_in(*heard.get(), come)
                if found is not None:
                    missing.discard(found)
                    self._say(f"   {self._address(found)} is here, on {come[found][1]}")
        if missing and not self._anyone:
            late = min(missing)
            raise RunError(
                f"{self._address(late)} has not come within {self._patience:g} s; start it with `rank={late}` and the "
                "same `cluster`, or wait longer with `cluster_timeout`"
            )

    def _take_in(self, connection: Connection, hello: Message, come: dict[int, tuple[Connection, str]]) -> int | None:
        """The rank of who has come; None where that is nobody of ours.

        Raises:
            UsageError: it differs, or somebody has come as that rank before.
            RunError: it has come to say that it has failed.
        """
        try:
            rank, host, size = (hello.document[name] for name in ("rank", "host", "size"))
        except KeyError:
            connection.close()
            return None
        name = f"{self._address(rank) if rank in range(self._members.size) else f'rank {rank}'} on {host}"
        if "failed" in hello.document:
            connection.close()
            raise RunError(f"{name} has failed: {hello.document['failed']}")
        try:
            if size != self._members.size or rank not in range(self._members.size):
                raise UsageError(
                    f"{name} has a cluster of {size} processes, rank 0 one of {self._members.size}; start all with the "
                    "same `cluster`"
                )
            if rank == self._members.rank:
                raise UsageError(f"rank {rank} was started twice, here and on {host}; give each process its own `rank`")
            if rank in come and not come[rank][0].has_ended:
                raise UsageError(
                    f"rank {rank} was started twice, on {come[rank][1]} and on {host}; give each process its own `rank`"
                )
            theirs = hello.document["equal"]
            ours = {name: value for name, value in self._greeting.equal.items() if name in theirs}
            if what := first_difference(ours, theirs):
                raise UsageError(f"{name} has {what[1]}, rank 0 has {what[0]}; start all with the same")
        except UsageError:
            come[len(self._members.addresses) + len(come)] = connection, host  # so that it is told, too
            raise
        connection.set_timeout(2 * UNREACHABLE_SECONDS)
        come[rank] = connection, host
        return rank

    def _refuse(self, come: Mapping[int, tuple[Connection, str]], error: UsageError | RunError) -> None:
        for connection, _ in come.values():
            with suppress(OSError):
                connection.send(Message(REFUSED, {"why": str(error), "exit": error.exit_code}).encode())
            connection.close()

    # The others

    def follow(self, leader: int) -> Cluster:
        """Goes to the rank that leads."""
        deadline = time.monotonic() + self._patience
        self._say(f"🌐 Looking for {self._address(leader)}")
        connection = self._reach(leader, deadline)
        try:
            self._say_hello(connection)
            connection.set_timeout(max(0.0, deadline - time.monotonic()) + MARGIN_SECONDS)
            welcome = self._hear(connection, leader, WELCOME).document
            addresses, hosts, rank = tuple(welcome["addresses"]), tuple(welcome["hosts"]), welcome["rank"]
            connection.send(Message(REACHED, {"problem": self._try_next(addresses, rank)}).encode())
            self._hear(connection, leader, READY)
        except OSError as error:
            connection.close()
            raise RunError(f"{self._address(leader)} has gone while the others came: {error}") from None
        except BaseException:
            connection.close()
            raise
        return self._start(addresses, rank, {0: connection}, hosts)

    def tell_failure(self, error: UsageError | RunError) -> None:
        """Tells the others that this process does not come, as far as they are there within a few seconds."""
        deadline = time.monotonic() + HELLO_SECONDS
        if self._members.rank:
            with suppress(OSError, RunError), closing(self._reach(0, deadline)) as connection:
                self._say_hello(connection, failed=str(error))
            return
        with suppress(OSError, RunError), closing(self.listen()) as listener:
            listener.settimeout(LOOK_SECONDS)
            why = {"why": f"{self._address(0)} has failed: {error}", "exit": error.exit_code}
            while time.monotonic() < deadline:
                with suppress(TimeoutError), closing(Connection(listener.accept()[0])) as connection:
                    connection.send(Message(REFUSED, why).encode())

    def _say_hello(self, connection: Connection, **more: str) -> None:
        who = {"rank": self._members.rank, "size": self._members.size, "host": self._greeting.host}
        connection.send(Message(HELLO, {**who, **more, "equal": self._greeting.equal}).encode())

    def _reach(self, leader: int, deadline: float) -> Connection:
        """A connection to the rank that leads.

        Raises:
            RunError: nobody answers there in time.
        """
        address, begin = self._members.addresses[leader], time.monotonic()
        while True:
            try:
                return Connection(socket.create_connection(split_address(address), timeout=HELLO_SECONDS))
            except OSError as error:
                problem, refused = error.strerror or str(error), isinstance(error, ConnectionRefusedError)
            now = time.monotonic()
            if now > deadline or (not refused and now - begin > self._unreachable):
                waited = f"within {now - begin:.0f} s ({problem})"
                hint = "start it, or wait longer with `cluster_timeout`" if refused else "check the address and network"
                raise RunError(f"{self._address(leader)} cannot be reached {waited}; {hint}")
            time.sleep(LOOK_SECONDS)

    def _hear(self, connection: Connection, rank: int, kind: str) -> Message:
        """The next message of a rank, which must be of that kind.

        Raises:
            UsageError, RunError: it refuses, and says why; or it has gone.
        """
        try:
            message = connection.receive()
        except Foreign:
            raise RunError(
                f"{self._address(rank)} answers, and not as MyXTTS does; another program has that port, or the run has "
                "begun without this process"
            ) from None
        except TimeoutError:
            raise RunError(f"{self._address(rank)} has not answered; is it stopped?") from None
        except (EOFError, OSError):
            raise RunError(f"{self._address(rank)} has gone while the others came") from None
        if message.kind == REFUSED:
            kind_of = UsageError if message.document["exit"] == UsageError.exit_code else RunError
            raise kind_of(message.document["why"])
        if message.kind != kind:
            raise RunError(f"{self._address(rank)} said {message.kind!r} in place of {kind!r}")
        return message

    # All

    def _try_next(self, addresses: tuple[str, ...], rank: int) -> str:
        """What is wrong with the way to the next rank's address; empty where nothing is."""
        following = (rank + 1) % len(addresses)
        try:
            with socket.create_connection(split_address(addresses[following]), timeout=UNREACHABLE_SECONDS / 2):
                return ""
        except OSError as error:
            return (
                f"rank {rank} ({addresses[rank]}) cannot reach rank {following} ({addresses[following]}), though that "
                f"one has come: {error.strerror or error}; open its port"
            )

    def _start(
        self, addresses: tuple[str, ...], rank: int, connections: Mapping[int, Connection], hosts: tuple[str, ...]
    ) -> Cluster:
        for connection in connections.values():
            connection.set_timeout(None)
        return Cluster(addresses, rank, connections, hosts, self._say)
