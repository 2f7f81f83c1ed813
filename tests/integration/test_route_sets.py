"""Daemons of one outbox that have different routes: said loudly, and what it costs."""

LIMIT_S = 40


def test_different_routes_are_said(stage):
    stage.plugin("nowhere", module="null")
    stage.route("a", via="nowhere", history="1h")
    stage.route("b", via="nowhere", history="1h")
    one = stage.start("one")
    two = stage.daemon("two")
    two.configure({**two.configuration, "routes": {"a": stage.configuration["routes"]["a"]}})
    two.start()
    for daemon in (one, two):
        daemon.wait_log("DUEBOX-ROUTES-DIFFER", limit_s=LIMIT_S, text="2 different sets of routes")
    assert "one, two have 2 different sets of routes" in one.run("doctor", check=False).stdout
    two.reload({**two.configuration, "routes": stage.configuration["routes"]})
    for daemon in (one, two):
        daemon.wait_log("DUEBOX-ROUTES-SAME", limit_s=LIMIT_S)
    assert "all living daemons have the same" in one.run("doctor", check=False).stdout
