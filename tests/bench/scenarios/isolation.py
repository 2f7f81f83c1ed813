"""A hundred routes, one of them with a dead endpoint and half of the backlog."""

from ..measure import Load, scheduled, show_load
from ..scenario import BenchError, Goal, Scenario, say
from ..sinks import KafkaSink
from ..stage import Stage
from .lateness import LATENESS_HEAD, WARM, lateness_row, machine_rows

ROUTES = 99


def dead_route(bench, size):
    from support.servers.ports import free_port
    load = Load(500, size["seconds"], route=f"(IF(seq MOD {ROUTES} = 0, 'bench', CONCAT('bench', seq MOD {ROUTES})))")
    sink = KafkaSink()
    dead = {"via": "hooks", "url": f"http://127.0.0.1:{free_port()}/", "claim": "memory"}
    say(f"isolation: {ROUTES} routes at {load.per_s}/s, without and with {load.count:,} due rows of a dead one")
    with Stage(bench, sink, plugins={"hooks": {"module": "http", "allow_private": True}}, routes={"dead": dead}) as stage:
        configuration = stage.daemon.configuration
        configuration["routes"] |= {f"bench{number}": sink.route() for number in range(1, ROUTES)}
        stage.daemon.configure(configuration)
        stage.settle_in()
        stage.start()
        scheduled(stage, WARM, control=False)
        found = {"alone": scheduled(stage, load, 1 + WARM.count)}
        show_load(found["alone"], "alone")
        stage.fill(1, load.count, "UTC_TIMESTAMP(6)", route="dead")
        found["beside"] = scheduled(stage, load, 1 + WARM.count + load.count)
        show_load(found["beside"], "beside the dead route")
        waiting = bench.mariadb.execute("SELECT COUNT(*) FROM outbox WHERE route = 'dead'", db=stage.database)[0][0]
        if waiting != load.count:
            raise BenchError(f"{waiting} of {load.count} rows of the dead route are waiting")
        stage.stop()
    found["ratio"] = round(found["beside"]["arrival"]["p99_ms"] / found["alone"]["arrival"]["p99_ms"], 2)
    return found


def goals(found):
    return [Goal("p99 of the other routes beside a dead one, times that without", found["ratio"], "<=", 1.2)]


def show(found, page):
    page.text(f"{found['alone']['tasks']:,} tasks over {ROUTES} routes to Kafka; then the same beside as many due rows of a route"
              " whose endpoint refuses connections. Lateness at the consumer:")
    page.table(LATENESS_HEAD, [row for name in ("alone", "beside") for row in (
        lateness_row(name, found[name]["per_s"], found[name]["arrival"], found[name]), *machine_rows(found[name]))])
    page.curves([(name, found[name]["arrival"]["buckets"]) for name in ("alone", "beside")])


SCENARIOS = [
    Scenario("dead-route", "A dead route among a hundred", dead_route,
             {"quick": {"seconds": 5}, "default": {"seconds": 20}, "full": {"seconds": 60}},
             {"quick": 30, "default": 80, "full": 160}, show, goals),
]
