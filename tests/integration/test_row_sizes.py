"""What a row has beside its payload counts for the limits on bytes: a checkpoint may be as large as a payload."""

import threading
from pathlib import Path

from support.servers.http_receiver import Answer
from support.wait import wait_until

LIMIT_S = 60
MIB = 1 << 20


def insert(stage, route, count, checkpoint_bytes):
    stage.execute("INSERT INTO outbox (route, payload, checkpoint, delay_ms)"
                  f" SELECT '{route}', '{{}}', REPEAT('c', {checkpoint_bytes}), 0 FROM seq_1_to_{count}")


def peak_memory(daemon):
    (line,) = (line for line in Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
               if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def arrived(stage, path):
    return [request for request in stage.receiver.requests if request.path == path]


def test_checkpoints_count_as_bytes_in_flight(stage):
    """Only payloads used to count, so that all of them were in flight at once."""
    stage.http("work", claim="memory", concurrency=1000, inflight_bytes="1MiB", timeout="5m")
    released = threading.Event()
    stage.receiver.on("/work", Answer(after=released))
    daemon = stage.start(engine={"max_checkpoint": "1MiB"})
    insert(stage, "work", 100, 60_000)
    fit = MIB // 60_002
    stage.receiver.wait_count(fit, LIMIT_S, "/work")
    assert daemon.metric("duebox_inflight_bytes", route="work") >= fit * 60_002
    assert daemon.metric("duebox_inflight_tasks", route="work") <= fit + 1  # what fits is estimated by what was read
    released.set()
    stage.receiver.wait_count(100, LIMIT_S, "/work")
    assert {len(request.headers["duebox-checkpoint"]) for request in arrived(stage, "/work")} == {60_000}


def test_rows_with_large_checkpoints_are_not_read_at_once(stage):
    """One answer used to have them all: with enough of them it passed the limit of an answer, and every route stood
    still for as long as they were due."""
    stage.http("large", claim="memory", concurrency=10000)
    stage.http("other")
    daemon = stage.start(engine={"max_checkpoint": "1MiB"})
    insert(stage, "other", 1, 1)
    stage.receiver.wait_count(1, LIMIT_S, "/other")
    before = peak_memory(daemon)
    insert(stage, "large", 300, 1_000_000)
    insert(stage, "other", 1, 1)
    stage.receiver.wait_count(2, LIMIT_S, "/other")
    wait_until(lambda: stage.count(where="route = 'large' AND state = 'scheduled'") == 0, LIMIT_S,
               "the large ones to end: no request has room for such a header")
    assert peak_memory(daemon) - before < 150 * MIB


def test_rows_that_grow_while_they_are_sent_are_not_read_at_once(stage):
    """Whether a changed row has the content that was sent was found out by reading it all, of however many rows and
    however large they had become. What has become larger is another content, and need not be read for that."""
    stage.http("work", claim="memory", concurrency=1000, timeout="5m")
    released = threading.Event()
    stage.receiver.on("/work", Answer(after=released))
    daemon = stage.start(engine={"settle_delay": "2s"})
    insert(stage, "work", 300, 1)
    stage.receiver.wait_count(300, LIMIT_S, "/work")
    before = peak_memory(daemon)
    stage.execute("UPDATE outbox SET payload = REPEAT('p', 1000000), delay_ms = 0, due_at = '2100-01-01'")
    released.set()
    wait_until(lambda: daemon.metric("duebox_inflight_tasks", route="work") == 0, LIMIT_S, "the changed ones to be back")
    assert stage.count(where="state = 'scheduled' AND attempt = 1") == 300
    assert peak_memory(daemon) - before < 100 * MIB
