"""The report is whole: every scenario has a section, every chart is an SVG file, every goal has its row."""

import json
from xml.etree import ElementTree

import pytest

from bench import charts, report
from bench.scenario import SIZES, BenchError, Goal, Scenario
from bench.scenarios import ALL
from bench.tools import judge


def scenario(name="one"):
    def show(found, page):
        page.text("text")
        page.table(["", "a"], [["x", found["a"]]])
        page.bars([("raw & loop", 1), ("duebox", 2)], "rows")
        page.curves([("late", [[50, 99], [2_000_000, 1]]), ("nothing late", [[0, 5]])])
        page.lines_chart([("a", [1, 2, 3]), ("b", [0])], "x", "y")
    return Scenario(name, f"Title of {name}", None, {}, {}, show)


def piece(name, **more):
    return {"scenario": name, "mode": "quick", "commit": "abc", "machine": {"processor": "2 x"}, "at": "now", "seconds": 1,
            "load_before": [0, 0, 0], "load_after": [0, 0, 0], **more}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "FOLDER", tmp_path / "pieces")
    monkeypatch.setattr(report, "CAUSES", tmp_path / "causes.json")
    (tmp_path / "pieces").mkdir()
    (tmp_path / "causes.json").write_text(json.dumps({"slow": "the disk"}))
    return tmp_path


def test_a_report_holds_sections_goals_and_charts(folder):
    goals = [Goal("fast", 1, ">=", 0.9).piece(), Goal("slow", 3, "<=", 2, "ms").piece()]
    (folder / "pieces" / "one.json").write_text(json.dumps(piece("one", found={"a": 7}, goals=goals)))
    (folder / "pieces" / "two.json").write_text(json.dumps(piece("two", error="BenchError: 3 tasks came early")))
    missed = report.write([scenario("one"), scenario("two"), scenario("three")], folder / "docs")
    text = (folder / "docs" / "BENCHMARKS.md").read_text()
    assert [goal["what"] for goal in missed] == ["slow"]
    assert "| 3 ms | **missed** | the disk |" in text and "| x | 7 |" in text
    assert "**Not measured**: BenchError: 3 tasks came early" in text and "Title of three" not in text
    drawn = sorted(path.name for path in (folder / "docs" / "bench").iterdir())
    assert drawn == ["one-1.svg", "one-2.svg", "one-3.svg"]
    for name in drawn:
        assert f"(bench/{name})" in text
        ElementTree.parse(folder / "docs" / "bench" / name)


def test_without_pieces_there_is_no_report(folder):
    with pytest.raises(SystemExit):
        report.write([scenario()], folder / "docs")


def test_every_scenario_has_all_sizes_and_a_name_of_its_own():
    assert len({one.name for one in ALL}) == len(ALL)
    for one in ALL:
        assert set(one.sizes) == set(one.seconds) == set(SIZES), one.name


def test_charts_stay_inside_their_frame():
    drawn = ElementTree.fromstring(charts.curves([("x", [[1, 1], [10**12, 1]])]))
    for line in drawn.iter("{http://www.w3.org/2000/svg}polyline"):
        for point in line.get("points").split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= charts.WIDTH and 0 <= y <= charts.HEIGHT


@pytest.mark.parametrize("wrong", [{"distinct": 9}, {"arrivals": 11}, {"strangers": 1}, {"early": 1}])
def test_a_ledger_that_does_not_come_out_even_is_no_measurement(wrong):
    even = {"expected": 10, "distinct": 10, "arrivals": 10, "strangers": 0, "early": 0}
    assert judge(even, "it") is even
    with pytest.raises(BenchError):
        judge({**even, **wrong}, "it")
