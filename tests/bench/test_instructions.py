"""The hot path does not grow unseen: instructions per drained task against tests/bench/instructions.json."""

import json

from bench import instructions


def test_a_drained_task_costs_no_more_instructions_than_recorded(mariadb, tmp_path):
    baseline = json.loads(instructions.BASELINE.read_text())
    found = instructions.least(mariadb, tmp_path, lambda one: instructions.compare(one, baseline) is None)
    text = instructions.compare(found, baseline)
    assert text is None, text


def test_the_comparison_names_what_grew():
    baseline = {"total": 1000, "duebox": 500, "functions": {"duebox: a": 300.0, "duebox: b": 200.0},
                "with": instructions.surroundings()}
    assert instructions.compare({**baseline, "total": 1149}, baseline) is None
    text = instructions.compare({**baseline, "duebox": 700, "functions": {"duebox: a": 500.0, "duebox: b": 200.0}}, baseline)
    assert "40 % more" in text and "+200.0" in text and "duebox: a" in text and "duebox: b" not in text
