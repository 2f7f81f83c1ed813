"""Since when tasks wait for a target that is suspended by itself: no metric has it, and the table does."""

from support.servers.http_receiver import Answer
from support.wait import wait_until


def test_the_age_of_what_waits_for_a_suspended_target(stage):
    stage.http("hook", url=f"{stage.receiver.url}/t/{{task_key}}", history="1h", give_up="10h")
    stage.receiver.on("/t/bad", Answer(410))
    daemon = stage.start()
    stage.execute("INSERT INTO outbox (route, payload, task_key, due_at)"
                  " VALUES ('hook', 'x', 'bad', UTC_TIMESTAMP(6) - INTERVAL 150 MINUTE)")
    wait_until(lambda: daemon.metric("duebox_route_targets_suspended", route="hook") == 1, 30, "the target to be suspended")
    wait_until(lambda: daemon.metric("duebox_oldest_due_age_seconds", route="hook") == 0, 30, "its task to be put off")
    # As OPERATIONS has it.
    (error, count, hours), = stage.execute(
        "SELECT error_class, COUNT(*), TIMESTAMPDIFF(HOUR, MIN(first_due_at), UTC_TIMESTAMP()) FROM outbox"
        " WHERE route = 'hook' AND state = 'scheduled' AND first_due_at IS NOT NULL GROUP BY error_class")
    assert (error, count, hours) == ("http.410", 1, 2)
