"""engine.realtime and engine.cpus: what the kernel says of the daemon's threads."""

import os
from pathlib import Path

import pytest

from support.daemon import Daemon, preset_folder
from support.wait import wait_until

ROUND_ROBIN = str(os.SCHED_RR)
ON_THE_WAY_OUT = {"scheduler", "settler", "hooks"}
RATHER_NOT = {"keeper", "housekeeper", "inbox"}


def threads(daemon):
    """{name: (policy, priority, processors)} of each thread of its own, when all have their names."""
    found = {}

    def look():
        found.clear()
        for task in Path(f"/proc/{daemon.process.pid}/task").iterdir():
            before, _, after = (task / "stat").read_text().rpartition(")")
            fields = after.split()          # from the third field of proc(5) on
            status = (task / "status").read_text()
            cpus = next(line for line in status.splitlines() if line.startswith("Cpus_allowed_list:")).split()[1]
            found[before.partition("(")[2]] = (fields[38], fields[37], cpus)
        return ON_THE_WAY_OUT | RATHER_NOT <= set(found)
    wait_until(look, 20, "the threads to have their names", ignore=OSError, detail=lambda: str(found))
    return found


def said(daemon, log_id):
    return "\n".join(line["msg"] for line in daemon.lines() if line["id"] == log_id)


def may_be_realtime():
    try:
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        os.sched_setscheduler(0, *before)
        return True
    except PermissionError:
        return False


def prepare(stage, engine):
    stage.configuration["plugins"]["hooks"] = {"module": "http", "allow_private": True}
    stage.configuration["routes"]["h"] = {"via": "hooks", "url": "http://127.0.0.1:9/none"}
    stage.configuration["engine"].update(engine)
    return stage.daemon()


def test_it_is_off_by_default(stage):
    found = threads(prepare(stage, {}).start())
    own = Path("/proc/self/status").read_text().partition("Cpus_allowed_list:")[2].split()[0]
    assert {(policy, priority) for policy, priority, _ in found.values()} == {(str(os.SCHED_OTHER), "0")}
    assert {cpus for _, _, cpus in found.values()} == {own}


@pytest.mark.skipif(not may_be_realtime(), reason="needs the right to a real-time priority")
def test_threads_on_the_way_out_go_first(stage):
    cpu = min(os.sched_getaffinity(0))
    daemon = prepare(stage, {"realtime": True, "cpus": str(cpu)}).start()
    wanted = dict.fromkeys(ON_THE_WAY_OUT, (ROUND_ROBIN, "1"))     # each sets its own, after its name
    wait_until(lambda: {name: it[:2] for name, it in threads(daemon).items() if name in wanted} == wanted, 20,
               "the threads to have their priority", detail=lambda: str(threads(daemon)))
    found = threads(daemon)
    assert {found[name][0] for name in RATHER_NOT} == {str(os.SCHED_OTHER)}
    assert {cpus for _, _, cpus in found.values()} == {str(cpu)}
    assert not said(daemon, "DUEBOX-REALTIME") + said(daemon, "DUEBOX-CPUS")
    changed = {**daemon.configuration, "engine": {**daemon.configuration["engine"], "realtime": False}}
    assert not daemon.reload(changed)


def test_without_the_right_it_runs_and_says_so(stage):
    program = [preset_folder() / "bin" / "duebox"]
    if os.geteuid() == 0:
        program = ["prlimit", "--rtprio=0", "setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice", *program]
    allowed = prepare(stage, {"realtime": True, "cpus": "1023"})
    with Daemon(stage.folder / "without", allowed.configuration, program=program) as daemon:
        daemon.port = allowed.port
        found = threads(daemon.start())
        assert {policy for policy, _, _ in found.values()} == {str(os.SCHED_OTHER)}
        wait_until(lambda: all(f"thread={name} " in said(daemon, "DUEBOX-REALTIME") for name in ON_THE_WAY_OUT), 20,
                   "each thread to say that it may not", detail=daemon.log_tail)
        assert "LimitRTPRIO=1" in said(daemon, "DUEBOX-REALTIME")
        assert "1023" in said(daemon, "DUEBOX-CPUS")
