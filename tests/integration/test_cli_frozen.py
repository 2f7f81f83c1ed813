"""Commands beside a daemon that stands still: how long they wait, and what they say that nobody can know."""

import json
import time

import pytest

ANSWER_S = 15       # as OPERATIONS says
BUSY_S = 10


@pytest.fixture
def frozen(stage):
    stage.http("hook", history="1h")
    stage.configuration["engine"]["lease"] = "60s"
    daemon = stage.start()
    stage.execute("INSERT INTO outbox (message_id, route, payload, delay_ms, shard)"
                  " SELECT CONCAT('m', seq), 'hook', '', 3600000, 3 FROM seq_1_to_20")
    stage.ids = [f"m{i}" for i in range(1, 21)]
    daemon.pause()
    yield stage
    daemon.resume()


@pytest.mark.parametrize("by", ["one", "ids", "filter"])
def test_a_frozen_daemon_is_waited_for_once(frozen, by):
    """It may still do what it was asked for, for each task of the request. The command used to ask once more for one of
    them, and to be in doubt about that one alone."""
    which = {"one": frozen.ids[:1], "ids": frozen.ids, "filter": ["--route", "hook", "--yes"]}[by]
    began = time.monotonic()
    said = frozen.daemons[0].run("task", "cancel", *which, "-o", "json", check=False)
    took_s = time.monotonic() - began
    assert said.returncode == 69 and "whether it was carried out is not known" in said.stderr, said
    assert json.loads(said.stdout)["changed"] == 0
    assert took_s < ANSWER_S + BUSY_S
    if by != "one":
        assert " other" in said.stderr.split(": the daemon")[0], said.stderr
