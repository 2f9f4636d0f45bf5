"""The forecast's benchmark on small folders: what it reads, what it leaves out, what its figures mean."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.forecast import __main__ as command
from benchmarks.forecast import judge, tables, traces, varied
from models.forecasting import windows

HOURS = 14


def put(folder: Path, name: str, **columns: object) -> None:
    pd.DataFrame(columns).to_csv(folder / name, index=False)


def counted(folder: Path, name: str, requests: list[float], *, step: int = 1) -> None:
    put(folder, name, minute=step * np.arange(len(requests)), requests=requests)


def read(folder: Path) -> tuple[dict[str, traces.Trace], list[str]]:
    told: list[str] = []
    return {trace.name: trace for trace in traces.read(folder, told.append)}, told


def test_rows_that_lack_and_empty_cells_are_unknown_and_minutes_without_a_request_are_not(tmp_path: Path) -> None:
    put(tmp_path, "a_10min.csv.gz", minute=[0, 10, 30, 40], requests=[1, None, 3, 4])
    put(tmp_path, "b_req.csv", arrival_s=[30.0, 31.0, 200.0, 280.0])
    found, told = read(tmp_path)
    assert (found["a_10min"].step, found["b_req"].step) == (600.0, 60.0)
    np.testing.assert_array_equal(found["a_10min"].counts, [1, np.nan, np.nan, 3, 4])
    assert found["b_req"].counts.tolist() == [2, 0, 1, 0]  # the last minute is not whole
    assert not told


def test_every_second_file_by_name_is_held_out(tmp_path: Path) -> None:
    for name in ("c", "a", "d", "b"):
        counted(tmp_path, f"{name}.csv.gz", [1.0] * 5)
    found, _ = read(tmp_path)
    assert {name for name, trace in found.items() if trace.held_out} == {"b", "d"}


def test_files_with_too_little_in_them_are_left_out_and_told(tmp_path: Path) -> None:
    counted(tmp_path, "a.csv", [5.0])
    counted(tmp_path, "b.csv", [])
    put(tmp_path, "c_req.csv", arrival_s=[0.0, 40.0])
    put(tmp_path, "d_req.csv", arrival_s=[])
    counted(tmp_path, "e.csv", [5.0] * 3)
    found, told = read(tmp_path)
    assert list(found) == ["e"]
    assert [line.split(":")[0] for line in told] == [
        f"{name} has {points} whole steps of 60 s" for name, points in (("a", 1), ("b", 0), ("c_req", 0), ("d_req", 0))
    ]


@pytest.mark.parametrize("steps", [1, 3, 8])
def test_what_came_is_what_the_forecaster_scores_itself_by(steps: int) -> None:
    """Written twice: a benchmark must not judge a forecast by the forecast's own mistakes."""
    values = np.random.default_rng(1).poisson(5.0, 60).astype(np.float64)
    values[[3, 4, 5, 20, 30, 31, 32, 33, 59]] = np.nan
    ours = traces.largest_ahead(traces.Trace("a", 60.0, values, held_out=False), steps)
    np.testing.assert_array_equal(ours, windows.largest_ahead(values[None], steps)[0])


def test_a_run_scores_every_trace_and_averages_the_long_ones(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    counted(tmp_path, "a.csv", rng.poisson(20.0, HOURS * 6).tolist(), step=10)
    counted(tmp_path, "b.csv", [0.0] * (HOURS * 6), step=10)
    counted(tmp_path, "c.csv", rng.poisson(20.0, 60).tolist(), step=10)
    found = command.accuracy(tmp_path, quick=True)
    assert {(f.trace, f.averaged, f.held_out) for f in found} == {
        ("a", True, False),
        ("b", True, True),
        ("c", False, False),
    }
    assert [f.warm_up for f in found[:3]] == list(command.WARM_UPS)
    assert all(f.scored == HOURS * 6 - HOURS * 6 // 4 - 1 for f in found[:6])  # a step of ten minutes is every horizon
    summary = judge.summary(found)
    assert summary is not None
    assert summary.traces == 2
    assert summary.coverage[0.9] == pytest.approx((found[0].coverage[0.9] + 1) / 2)  # silence is always covered
    assert 0.5 < summary.overall["plain_ses"] < 2  # of the one on which plain SES errs at all
    text = tables.written(found, [])
    assert text.count("| a | development |") == 3
    assert text.count("| c | short |") == 3
    tables.place(tmp_path / "docs.md", text)
    tables.place(tmp_path / "docs.md", text)
    assert (tmp_path / "docs.md").read_text().count("| a | development |") == 3


def test_variations_are_other_loads_of_the_same_kind(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    loads = {"one": rng.poisson(40, 3 * 1440).astype(float), "two": rng.poisson(20, 2 * 1440).astype(float)}
    loads["one"][100] = np.nan
    loads["one"][2000] = 900
    for name, load in loads.items():
        counted(tmp_path, f"{name}.csv", load.tolist())
    counted(tmp_path, "short.csv", [1.0] * 60)
    found = {name: counts for name, _, counts in varied.variations(list(read(tmp_path)[0].values()), rng)}
    assert set(found) == {"sparse_one", "back_one", "day_one", "with_one", "sparse_two", "back_two", "day_two"}
    assert np.nanmean(found["sparse_one"]) == pytest.approx(3, rel=0.05)
    assert np.isnan(found["sparse_one"][100])
    assert (found["sparse_two"] <= loads["two"]).all()
    np.testing.assert_array_equal(found["back_one"], loads["one"][::-1])
    assert found["day_one"].tolist() == loads["one"][1440:2880].tolist()
    assert len(found["with_one"]) == 2 * 1440
    assert np.nanmean(found["with_one"]) == pytest.approx(2 * 40, rel=0.02)


def test_variations_are_read_as_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted(tmp_path, "coarse.csv", [5.0, np.nan, *[7.0] * 400], step=5)
    monkeypatch.setattr("sys.argv", ["varied", str(tmp_path), str(tmp_path / "out")])
    assert varied.main() == 0
    found, told = read(tmp_path / "out")
    assert not told
    assert {name: trace.step for name, trace in found.items()} == {"back_coarse": 300, "sparse_coarse": 300}
    assert np.isnan(found["back_coarse"].counts[-2])
