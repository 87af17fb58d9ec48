"""The processes of one training, and what they tell each other beside the gradients.

In: connections of rank 0 to all others.
Out: what rank 0 has decided, what the others found, and who is lost: every wait ends with an answer or with a name.

Gradients go over TensorFlow's own collective operations; this tells who is there and why a run ends.
"""

import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

from myxtts.cluster.connection import Connection, Foreign, Message
from myxtts.errors import RunError, UsageError

BEAT_SECONDS = 1.0
SILENCE_SECONDS = 20.0  # without a sign of life after which a process is lost
WAIT_SECONDS = 3600.0  # that one process waits for what another does; rank 0 may validate or prepare for long
PREPARE_SECONDS = 7 * 86_400.0  # that preparing data may take
STEP_SECONDS = 900.0  # that a step may take, its compilation included
TELL_SECONDS = 30.0  # after which a wait is told
LEAVE_SECONDS = 3.0
BEAT, BYE, END, FAILED, LOST = "beat", "bye", "end", "failed", "lost"
ORDER, REPORT = "order", "report"


class Cluster:
    """Use it as a context manager: leaving it tells the others how this process has ended.

    Args:
        addresses: of all ranks.
        rank: of this process.
        connections: by rank; rank 0 has one to each, the others have one to it.
        hosts: the names of the machines.
        say: told what this process waits for.
    """

    def __init__(
        self,
        addresses: tuple[str, ...],
        rank: int,
        connections: Mapping[int, Connection],
        hosts: tuple[str, ...],
        say: Callable[[str], None] = lambda line: None,
    ):
        self.addresses, self.rank, self.hosts = addresses, rank, hosts
        self._connections, self.say = dict(connections), say
        self._mail: dict[tuple[int, str], deque[Message]] = defaultdict(deque)
        self._changed = threading.Condition()
        self._lost: tuple[int, str] | None = None
        self._over = threading.Event()
        self._left: set[int] = set()  # who has said that it ends
        self._steps = dict.fromkeys(range(len(addresses)), 0)  # the step that each has begun last
        self._in_step: float | None = None  # when this process has begun one that is not over
        self.on_lost: Callable[[], None] = lambda: None  # called once, by another thread
        self.stopped_by: int | None = None  # the rank that was told to end the run
        self._readers = [
            threading.Thread(target=self._read, args=(peer, connection), name=f"rank {peer}", daemon=True)
            for peer, connection in self._connections.items()
        ]
        self._beating = threading.Thread(target=self._beat, name="cluster", daemon=True)

    @property
    def size(self) -> int:
        return len(self.addresses)

    @property
    def leads(self) -> bool:
        """Whether this process decides, saves and logs."""
        return self.rank == 0

    def name(self, rank: int) -> str:
        """What a person calls a rank."""
        return f"rank {rank} ({self.addresses[rank]}, on {self.hosts[rank]})"

    def __enter__(self) -> Self:
        for thread in (*self._readers, self._beating):
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            why = f"has failed: {error}" if isinstance(error, RunError | UsageError) else f"has failed: {error!r:.200}"
            if not isinstance(error, Exception):  # Ctrl-C or SIGTERM
                why = "was interrupted"
            self._tell_all(Message(FAILED, {"why": why}))
        self._tell_all(Message(BYE))
        self._over.set()
        for connection in self._connections.values():
            connection.finish()
        for reader in self._readers:  # what was sent arrives only as long as the other side's words are read
            reader.join(LEAVE_SECONDS)
        self.cut()

    def cut(self) -> None:
        """Ends all connections without a word, as a process does that is killed."""
        self._over.set()
        for connection in self._connections.values():
            connection.close()

    # What is told

    def share(self, payload: bytes | None, doing: str, limit: float = WAIT_SECONDS) -> bytes:
        """Rank 0 gives all others some bytes; `doing` tells what it does until they come."""
        if payload is not None:
            self._tell_all(Message("share", payload=payload))
            return payload
        return self._take(0, "share", doing, limit).payload

    def share_document(self, document: dict[str, Any], doing: str, limit: float = WAIT_SECONDS) -> dict[str, Any]:
        """The same for a table of values; everyone gives one, and rank 0's is everyone's."""
        content = self.share(json.dumps(document).encode() if self.leads else None, doing, limit)
        return json.loads(content)

    def gather(self, document: dict[str, Any], doing: str, limit: float = WAIT_SECONDS) -> list[dict[str, Any]]:
        """What every rank found, by rank; the others get an empty list."""
        if not self.leads:
            self._tell_all(Message("gather", document))
            return []
        return [document, *(self._take(rank, "gather", doing, limit).document for rank in range(1, self.size))]

    def require_equal(self, found: Mapping[str, Any], doing: str, hint: str, limit: float = WAIT_SECONDS) -> None:
        """Refuses to go on where a rank found something else than rank 0; also a place where all wait for all.

        Raises:
            UsageError: on every rank, naming the first difference.
        """
        difference = ""
        if self.leads:
            ours, *others = self.gather(dict(found), doing, limit)
            for rank, theirs in enumerate(others, 1):
                if not difference and (what := first_difference(ours, theirs)):
                    difference = f"{self.name(rank)} has {what[1]}, rank 0 has {what[0]}; {hint}"
            self._tell_all(Message("verdict", {"difference": difference}))
        else:
            self.gather(dict(found), doing)
            difference = self._take(0, "verdict", doing, limit).document["difference"]
        if difference:
            raise UsageError(difference)

    def order(self, document: dict[str, Any]) -> None:
        """Rank 0 tells what all do next."""
        self._tell_all(Message(ORDER, document))

    def next_order(self) -> dict[str, Any]:
        """What rank 0 wants done next."""
        return self._take(0, ORDER, "decide what comes next").document

    def report(self, document: dict[str, Any]) -> None:
        """Tells rank 0 how this process is doing."""
        self._tell_all(Message(REPORT, document))

    def reports(self) -> dict[int, dict[str, Any]]:
        """The newest report of each other rank that has made one."""
        with self._changed:
            kept = {rank: self._mail[rank, REPORT] for rank in range(1, self.size)}
            for box in kept.values():
                while len(box) > 1:
                    box.popleft()
            return {rank: box[-1].document for rank, box in kept.items() if box}

    def ask_to_end(self) -> None:
        """Asks rank 0 to end the run, as it does when it is stopped itself."""
        self._tell_all(Message(END))

    # Who is lost

    def begin_step(self, number: int) -> None:
        """Notes that this process begins a step, in which it may wait for others."""
        self._steps[self.rank], self._in_step = number, time.monotonic()

    def end_step(self) -> None:
        self._in_step = None

    def explain(self, seconds: float = SILENCE_SECONDS + 5) -> RunError | None:
        """After a step has failed: the rank that is lost, if one is; what it is called may be known a little later."""
        with self._changed:
            self._changed.wait_for(lambda: self._lost is not None, seconds)
            return self._as_error()

    @property
    def lost(self) -> int | None:
        """The rank that is lost."""
        return self._lost[0] if self._lost else None

    def require_whole(self) -> None:
        """Raises what `explain` gives, if somebody is lost."""
        if error := self._as_error():
            raise error

    def _as_error(self) -> RunError | None:
        if self._lost is None:
            return None
        rank, why = self._lost
        if rank == self.rank:
            return RunError(f"this process, rank {rank}, {why}")
        return RunError(f"{self.name(rank)} {why}")

    def _note_lost(self, rank: int, why: str) -> None:
        """The first loss is the cause; what follows from it is not told."""
        with self._changed:
            if self._lost is not None or self._over.is_set():
                return
            self._lost = rank, why
            self._changed.notify_all()
        if self.leads:
            self._tell_all(Message(LOST, {"rank": rank, "why": why}))
        self.on_lost()

    # Threads

    def _take(self, rank: int, kind: str, doing: str, limit: float = WAIT_SECONDS) -> Message:
        begin, told = time.monotonic(), False
        with self._changed:
            while not self._mail[rank, kind]:
                if error := self._as_error():
                    raise error
                if rank in self._left:
                    raise RunError(f"{self.name(rank)} has left the run")
                waited = time.monotonic() - begin
                if waited > limit:
                    raise RunError(f"{self.name(rank)} took more than {limit:g} s to {doing}")
                if waited > TELL_SECONDS and not told:
                    told = True
                    self.say(f"waiting for {self.name(rank)} to {doing}...")
                self._changed.wait(1.0)
            return self._mail[rank, kind].popleft()

    def _tell_all(self, message: Message) -> None:
        encoded = message.encode()
        for connection in self._connections.values():
            with suppress(OSError):  # its reader finds out and names it
                connection.send(encoded)

    def _read(self, peer: int, connection: Connection) -> None:
        why = "is lost: its connection ended; it was killed, or its machine or network is gone"
        try:
            while True:
                message = connection.receive()
                if message.kind == BEAT:
                    self._steps[peer] = message.document["step"]
                elif message.kind == FAILED:
                    self._note_lost(peer, message.document["why"])
                elif message.kind == LOST:
                    self._note_lost(message.document["rank"], message.document["why"])
                elif message.kind == END:
                    self.stopped_by = peer
                else:
                    with self._changed:
                        if message.kind == BYE:
                            self._left.add(peer)
                        else:
                            self._mail[peer, message.kind].append(message)
                        self._changed.notify_all()
        except (EOFError, OSError, Foreign):
            if peer not in self._left:
                self._note_lost(peer, why)

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._over.wait(BEAT_SECONDS):
            before, last = last, time.monotonic()
            if last - before > SILENCE_SECONDS / 2:  # nobody else is to blame
                self._note_lost(self.rank, f"was stopped for {last - before:.0f} s; the others may have given it up")
            beat = Message(BEAT, {"step": self._steps[self.rank]}).encode()
            for peer, connection in self._connections.items():
                if peer in self._left:
                    continue
                try:
                    connection.send_if_idle(beat)
                except OSError:
                    continue  # its reader finds out
                silent = time.monotonic() - connection.heard
                if silent > SILENCE_SECONDS:
                    self._note_lost(peer, f"is lost: no sign of life for {silent:.0f} s; it is stopped or cut off")
                    connection.close()  # nothing waits for it any longer
            self._look_for_who_hangs()

    def _look_for_who_hangs(self) -> None:
        begun = self._in_step
        if not self.leads or begun is None or time.monotonic() - begun < STEP_SECONDS:
            return
        last = min(self._steps, key=lambda rank: self._steps[rank])
        number = self._steps[0]
        self._note_lost(
            last,
            f"hangs: step {number} has not ended for {STEP_SECONDS:g} s, and it was the last to begin one "
            f"({self._steps[last]})",
        )


def first_difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first key that two tables disagree on, with the value of each, as words."""
    for name in (*ours, *(name for name in theirs if name not in ours)):
        if ours.get(name) != theirs.get(name):
            setting = "`{}={}`" if "." in name else "{} {}"
            values = ("none" if found.get(name) in ("", None) else found[name] for found in (ours, theirs))
            one, other = (setting.format(name, value) for value in values)
            return one, other
    return None
