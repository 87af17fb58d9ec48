"""Processes that find each other and talk, here as threads of one."""

import socket
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from myxtts.cluster.cluster import Cluster
from myxtts.cluster.connection import Connection, Foreign, Message
from myxtts.cluster.members import Members
from myxtts.cluster.rendezvous import Greeting, join, tell_failure
from myxtts.errors import RunError, UsageError
from tests.clusters import free_addresses
from tests.helpers import PATIENCE, comes_true

SAME = Greeting({"MyXTTS": "1"}, {"training.lr": 0.1}, "here")


def meet(*starts: tuple[int, Greeting], size: int = 2, patience: float = PATIENCE, anyone: bool = False) -> list:
    """Has processes of some ranks look for each other; what each came to, a cluster or an error."""
    addresses = free_addresses(size)

    def one(rank: int, greeting: Greeting) -> Cluster | None:
        return join(Members(addresses, rank), greeting, lambda line: None, patience, anyone)

    with ThreadPoolExecutor(len(starts)) as pool:
        found: list[Future] = [pool.submit(one, *start) for start in starts]
        return [future.exception() or future.result() for future in found]


def close(*clusters: Cluster) -> None:
    """Leaves as processes that have ended well do, all at the same time."""
    with ThreadPoolExecutor(len(clusters)) as pool:
        list(pool.map(lambda cluster: cluster.__exit__(None, None, None), clusters))


@pytest.fixture
def three():
    clusters = meet((0, SAME), (1, SAME), (2, SAME), size=3)
    for cluster in clusters:
        cluster.__enter__()
    yield clusters
    close(*clusters)


def everywhere(clusters, function) -> list:
    with ThreadPoolExecutor(len(clusters)) as pool:
        found = [pool.submit(function, cluster) for cluster in clusters]
        return [future.exception() or future.result() for future in found]


def test_what_rank_0_has_is_everyones_and_what_all_found_is_compared(three):
    def work(cluster):
        whole = cluster.share(b"x" * 3_000_000 if cluster.leads else None, "begin")
        table = cluster.share_document({"from": cluster.rank}, "begin")
        gathered = cluster.gather({"rank": cluster.rank}, "look")
        cluster.require_equal({"clips": 40}, "prepare", "give all the same")
        return len(whole), table, gathered

    found = everywhere(three, work)
    assert [one[:2] for one in found] == 3 * [(3_000_000, {"from": 0})]
    assert [one[2] for one in found] == [[{"rank": 0}, {"rank": 1}, {"rank": 2}], [], []]
    assert [cluster.name(1) for cluster in three] == 3 * [f"rank 1 ({three[0].addresses[1]}, on here)"]


def test_a_difference_is_named_everywhere(three):
    found = everywhere(
        three, lambda cluster: cluster.require_equal({"clips": 40 - (cluster.rank == 2)}, "prepare", "mend that")
    )
    assert {str(error) for error in found} == {f"{three[0].name(2)} has clips 39, rank 0 has clips 40; mend that"}
    assert {type(error) for error in found} == {UsageError}


def test_orders_come_in_order_and_reports_are_the_newest(three):
    for number in range(3):
        three[0].order({"number": number})
    assert [three[1].next_order()["number"] for _ in range(3)] == [0, 1, 2]
    for number in range(3):
        three[2].report({"step_ms": number})
    comes_true(lambda: three[0].reports() == {2: {"step_ms": 2}})
    three[1].ask_to_end()
    assert comes_true(lambda: three[0].stopped_by == 1)


def test_a_process_that_fails_is_named_with_its_reason_on_all_others(three):
    ended = threading.Event()
    three[0].on_lost = ended.set
    three[1].__exit__(RunError, RunError("the disk is full"), None)
    for cluster in (three[0], three[2]):
        error = cluster.explain(PATIENCE)
        assert str(error) == f"{cluster.name(1)} has failed: the disk is full" and cluster.lost == 1
    assert ended.is_set()
    with pytest.raises(RunError, match="the disk is full"):
        three[2].next_order()  # a wait that has begun or begins ends with it, too


@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_that_is_killed_is_named_on_all_others(three, rank):
    three[rank].cut()  # as the system does it for a process that is gone
    for cluster in three[:rank] + three[rank + 1 :]:
        assert f"{cluster.name(rank)} is lost" in str(cluster.explain(PATIENCE))


def test_who_is_not_equal_is_told_what_differs():
    other = Greeting({"MyXTTS": "1"}, {"training.lr": 0.2}, "there")
    found = meet((0, SAME), (1, other))
    assert len({str(error) for error in found}) == 1 and {type(error) for error in found} == {UsageError}
    assert "on there has `training.lr=0.2`, rank 0 has `training.lr=0.1`" in str(found[0])
    found = meet((0, SAME), (1, Greeting({"MyXTTS": "2"}, {}, "there")))
    assert "has MyXTTS 2, rank 0 has MyXTTS 1" in str(found[0])


def test_settings_that_only_rank_0_knows_are_not_compared():
    found = meet((0, SAME), (1, Greeting({"MyXTTS": "1"}, {}, "there")))
    assert [cluster.size for cluster in found] == [2, 2]
    for cluster in found:
        cluster.__enter__()
    close(*found)


def test_a_rank_that_comes_twice_ends_all():
    addresses = free_addresses(3)
    elsewhere = Members((addresses[0], free_addresses(1)[0], addresses[2]), 1)  # as on another machine
    with ThreadPoolExecutor(3) as pool:
        starts = [Members(addresses, 0), Members(addresses, 1), elsewhere]
        found = [pool.submit(join, members, SAME, lambda line: None, PATIENCE) for members in starts]
        errors = [future.exception() for future in found]
    assert {str(error) for error in errors} == {
        "rank 1 was started twice, on here and on here; give each process its own `rank`"
    }


def test_the_same_rank_twice_on_one_machine_ends_both():
    found = meet((0, SAME), (0, SAME))
    words = {str(error).split(",")[0] for error in found}
    assert any("rank 0 was started twice" in word for word in words), words
    assert all(isinstance(error, UsageError | RunError) for error in found)


def test_a_process_that_does_not_come_is_named():
    found = meet((0, SAME), (1, SAME), size=3, patience=5)
    assert len({str(error) for error in found}) == 1 and isinstance(found[0], RunError)
    assert "rank 2 (127.0.0.1:" in str(found[0]) and "has not come within 5 s" in str(found[0])
    assert "cannot be reached" in str(meet((1, SAME), patience=1)[0])


@pytest.mark.slow
def test_whoever_comes_back_goes_on():
    """The last two of three; the first of them leads, under new numbers."""
    found = meet((1, SAME), (2, SAME), size=3, patience=3, anyone=True)
    assert [(cluster.rank, cluster.size) for cluster in found] == [(0, 2), (1, 2)]
    assert found[0].addresses == found[1].addresses
    for cluster in found:
        cluster.__enter__()
    close(*found)
    assert meet((0, SAME), patience=1, anyone=True) == [None]


def test_a_port_that_another_program_has_is_named():
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=f"port {port} of this machine is in use"):
            join(Members((f"127.0.0.1:{port}", "127.0.0.1:1"), 0), SAME, lambda line: None, 1)


def test_messages_are_whole_or_an_error():
    server = socket.create_server(("127.0.0.1", 0))
    ours, (theirs, _) = socket.create_connection(server.getsockname()), server.accept()
    one, other = Connection(ours), Connection(theirs)
    one.send(Message("first", {"a": [1, None]}, b"12\n34").encode())
    one.send(Message("second").encode())
    assert other.receive() == Message("first", {"a": [1, None]}, b"12\n34")
    assert other.receive() == Message("second") and not other.has_ended
    ours.sendall(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(Foreign):
        other.receive()
    one.close()
    server.close()


@pytest.mark.parametrize("failing", [0, 1])
def test_a_process_that_fails_before_it_comes_tells_the_others(failing):
    addresses, error = free_addresses(2), UsageError("no training data")
    with ThreadPoolExecutor(2) as pool:
        telling = pool.submit(tell_failure, Members(addresses, failing), error)
        waiting = pool.submit(join, Members(addresses, 1 - failing), SAME, lambda line: None, PATIENCE)
        found = waiting.exception()
        telling.result()
    assert f"rank {failing} (127.0.0.1:" in str(found) and "has failed: no training data" in str(found)


@pytest.mark.slow
def test_connections_that_say_nothing_hold_nobody_up():
    addresses = free_addresses(2)
    with ThreadPoolExecutor(2) as pool, ExitStack() as stack:
        leading = pool.submit(join, Members(addresses, 0), SAME, lambda line: None, 15)
        host, port = addresses[0].split(":")

        def connects() -> bool:
            try:
                stack.enter_context(socket.create_connection((host, int(port))))
            except ConnectionRefusedError:  # it does not listen yet
                return False
            return True

        assert all(comes_true(connects) for _ in range(6))
        following = pool.submit(join, Members(addresses, 1), SAME, lambda line: None, 15)
        clusters = [leading.result(), following.result()]
    for cluster in clusters:
        cluster.__enter__()
    close(*clusters)
