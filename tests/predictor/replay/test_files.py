"""Files as people have them: what is read, and what each complaint says."""

import gzip
import zoneinfo
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.signals import Signal
from predictor.errors import ConfigurationError, FloorcastError, HistoryError
from predictor.replay import columns, csvfiles, tracefiles
from predictor.replay.csvfiles import Reading, Unit, mapped

NAN = float("nan")
BEGUN = 1767225600  # 2026-01-01
BASIC = mapped("time=ts,requests=rps")


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["chat.csv", "chat.csv.gz"])
def test_a_request_file_becomes_requests_a_second_without_its_last_minute(tmp_path: Path, name: str) -> None:
    rows = "".join(f"{time},10,5\n" for time in (0, 1, 59.9, 60, 130, 185))
    recorded = tracefiles.read([write(tmp_path / name, f"arrival_s,prompt_tokens,output_tokens\n{rows}")])
    arrivals = recorded.series["chat", Signal.ARRIVALS]
    assert (arrivals.values * 60).tolist() == pytest.approx([3, 1, 1])
    assert (recorded.series["chat", Signal.TOKENS_OUT].values * 60).tolist() == pytest.approx([15, 5, 5])
    assert not recorded.absolute
    assert "1 requests" in recorded.notes[0].what


def test_a_minute_without_requests_is_zero_in_a_request_file_and_unknown_tokens_stay_unknown(tmp_path: Path) -> None:
    recorded = tracefiles.read([write(tmp_path / "a.csv", "arrival_s,prompt_tokens\n0,7\n1,\n125,7\n190,7\n")])
    assert recorded.series["a", Signal.ARRIVALS].values.tolist() == pytest.approx([2 / 60, 0, 1 / 60])
    np.testing.assert_allclose(recorded.series["a", Signal.TOKENS_IN].values * 60, [NAN, 0, 7])
    assert any("unknown for 1 requests" in note.what for note in recorded.notes)


def test_a_file_of_counts_is_read_on_its_own_grid_and_an_empty_cell_is_no_zero(tmp_path: Path) -> None:
    text = "minute,requests,prompt_tokens,output_tokens\n0,600,,\n10,,,\n20,1200,,\n30,0,,\n"
    recorded = tracefiles.read([write(tmp_path / "a.csv", text)])
    series = recorded.series["a", Signal.ARRIVALS]
    assert series.step == 600
    np.testing.assert_allclose(series.values, [1, NAN, 2, 0])
    told = {note.where: note.what for note in recorded.notes}
    assert "empty throughout" in told["a.csv: prompt_tokens"]


def test_a_coarser_step_can_be_asked_for(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "minute,requests\n0,60\n1,120\n2,60\n3,0\n")
    assert tracefiles.read([file], step=120).series["a", Signal.ARRIVALS].values.tolist() == [1.5, 0.5]
    with pytest.raises(HistoryError, match="use a multiple"):
        tracefiles.read([file], step=30)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "cannot be read as CSV"),
        ("arrival_s\n", "no rows below its header"),
        ("when,what\n1,2\n", "columns are when, what.*--csv"),
        ("arrival_s\n0\nsoon\n90\n", r"line 3, column arrival_s: 'soon' is no finite number"),
        ("arrival_s\n0\ninf\n90\n", r"line 3, column arrival_s: 'inf'"),
        ("minute,requests\n0,1\n,2\n", r"line 3, column minute: '' is empty"),
        ("minute,requests\n0,many\n1,x\n", r"line 2, column requests: 'many' .* \(and 1 more\)"),
        ("minute,requests\n0,\n1,\n", "no row has a value"),
        ("arrival_s\n1\n2\n", "at least two steps"),
        ("arrival_s\n1767225600000\n1767225660000\n1767225720000\n", "s: the unit of the times is wrong"),
        ("arrival_s\n1\n2\n1e15\n", "the unit of the times, or one of them, is wrong"),
        ("arrival_s\n-1e38\n2\n1e38\n", "the unit of the times, or one of them, is wrong"),
        ("minute,requests\n0,1\n1,1\n2,1\n1e15,1\n", "the unit of the times, or one of them, is wrong"),
    ],
)
def test_a_trace_that_cannot_be_used_is_named_by_file_line_and_column(
    tmp_path: Path, text: str, complaint: str
) -> None:
    with pytest.raises(HistoryError, match=complaint) as caught:
        tracefiles.read([write(tmp_path / "a.csv", text)])
    assert "a.csv" in str(caught.value)


def test_a_broken_archive_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"minute,requests\n0,1\n" * 50)[:30])
    with pytest.raises(HistoryError, match="cannot be read"):
        tracefiles.read([tmp_path / "cut.csv.gz"])
    whole = bytearray(gzip.compress("".join(f"{i},{i * i % 97}\n" for i in range(2000)).encode()))
    whole[2000:2020] = bytes(20)
    (tmp_path / "wrong.csv.gz").write_bytes(whole)
    with pytest.raises(HistoryError, match="cannot be read"):
        tracefiles.read([tmp_path / "wrong.csv.gz"])
    with pytest.raises(ConfigurationError, match="no such file"):
        tracefiles.read([tmp_path / "none.csv"])
    with pytest.raises(ConfigurationError, match="is a folder"):
        tracefiles.read([tmp_path])


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    files = [write(tmp_path / name, "minute,requests\n0,1\n1,1\n") for name in ("a.csv", "b/a.csv")]
    with pytest.raises(HistoryError, match="given already"):
        tracefiles.read(files)


@pytest.mark.parametrize(
    "times",
    [
        ("1767225600", "1767225660", "1767225720"),
        ("1767225600000", "1767225660000", "1767225720000"),
        ("1767225600000000", "1767225660000000", "1767225720000000"),
        ("1767225600000000000", "1767225660000000000", "1767225720000000000"),
        ("1.7672256e9", "1.76722566e9", "1.76722572e9"),
        ("2026-01-01 00:00:00 UTC", "2026-01-01 00:01:00 UTC", "2026-01-01 00:02:00 UTC"),
        ("2026-01-01 01:00:00+01", "2026-01-01 01:01:00+01", "2026-01-01 01:02:00+01"),
        ("2026-01-01T01:00+0100", "2026-01-01T02:01:00.000+02:00", "2026-01-01T00:02Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"),
        ("2026-01-01 01:00:00", "2026-01-01 01:01:00", "2026-01-01 01:02:00"),
        ("2026-01-01T02:00:00+02:00", "2026-01-01T02:01:00+02:00", "2026-01-01T02:02:00+02:00"),
    ],
)
def test_times_are_read_as_people_write_them(tmp_path: Path, times: tuple[str, ...]) -> None:
    rows = "".join(f"{time},{value}\n" for time, value in zip(times, (1.5, 2, 3), strict=True))
    reading = Reading(BASIC, zone=zoneinfo.ZoneInfo("Europe/Berlin"))
    recorded = csvfiles.read(write(tmp_path / "a.csv", f"ts,rps\n{rows}"), reading)
    series = recorded.series["a", Signal.ARRIVALS]
    assert (series.start, series.step, series.values.tolist()) == (1767225600, 60, [1.5, 2, 3])
    assert recorded.notes == ()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize(
    "text",
    [
        "\ufeffts,rps\n0,1.5\n60,2\n120,3\n",
        "ts;rps\n0;1.5\n60;2\n120;3\n",
        "ts\trps\n0\t1.5\n60\t2\n120\t3\n",
        '"ts";"rps";"a,b,c"\n0;1.5;x\n60;2;x\n120;3;x\n',
        " ts , rps \n 0 , 1.5 \n 60 , 2 \n 120 , 3 \n",
        "ts,rps\r\n0,1.5\r\n60,2\r\n120,3\r\n",
        '"ts","rps"\n"0","1.5"\n"60","2"\n"120","3"\n',
        "ts,rps\n0,1.5,\n60,2,\n120,3,\n",  # an end that the header lacks moves no column
    ],
)
def test_dialects_of_csv_are_read_alike(tmp_path: Path, name: str, text: str) -> None:
    series = csvfiles.read(write(tmp_path / name, text), Reading(BASIC)).series["a", Signal.ARRIVALS]
    assert (series.start, series.step, series.values.tolist()) == (0, 60, [1.5, 2, 3])


def test_a_column_whose_name_holds_a_comma_is_given_by_its_number(tmp_path: Path) -> None:
    text = 'Time,"rate(x{a=""1"",b=""2""}[1m])"\n0,1\n60,2\n'
    recorded = csvfiles.read(write(tmp_path / "a.csv", text), Reading(mapped("time=#1,requests=#2")))
    assert recorded.series["a", Signal.ARRIVALS].values.tolist() == [1, 2]


def test_a_target_may_be_called_like_a_missing_value(tmp_path: Path) -> None:
    text = "ts,region,rps\n0,NA,1\n0,null,5\n60,NA,2\n60,null,6\n"
    recorded = csvfiles.read(write(tmp_path / "a.csv", text), Reading(mapped("time=ts,target=region,requests=rps")))
    assert {target for target, _ in recorded.series} == {"NA", "null"}


def test_a_target_that_cannot_be_used_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "ts,app,rps,busy\n0,a,1,1\n0,b,5,1\n0,c,1,1\n60,a,2,1\n60,c,1,\n")
    recorded = csvfiles.read(file, Reading(mapped("time=ts,target=app,requests=rps")))
    assert {target for target, _ in recorded.series} == {"a", "c"}
    (told,) = [note for note in recorded.notes if note.where == "b"]
    assert told.doubtful
    assert "left out: there are fewer than two different times" in told.what


def test_an_empty_column_of_a_state_is_unknown_and_takes_nothing_with_it(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "ts,rps,busy\n0,1.5,\n60,2,\n")
    recorded = csvfiles.read(file, Reading(mapped("time=ts,requests=rps,in_flight=busy")))
    assert [signal for _, signal in recorded.series] == [Signal.ARRIVALS]
    assert ("a.csv: busy", "empty throughout: unknown") in [(note.where, note.what) for note in recorded.notes]


def test_times_that_cannot_be_those_of_a_recording_are_asked_about(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "minute,rps\n0,1.5\n1,2\n2,3\n")
    assert doubts(file, "time=minute,requests=rps", Unit.RATE) == [
        "read as Unix seconds, the first being 1970-01-01 00:00:00 UTC; are they seconds?"
    ]


def test_counts_are_not_spread_over_a_finer_step(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "ts,n\n0,60\n60,60\n120,60\n")
    with pytest.raises(HistoryError, match="a step of 7 s was asked for: there is a count for every 60 s only"):
        csvfiles.read(file, Reading(mapped("time=ts,requests=n"), Unit.COUNT, step=7.0))


def test_an_hour_that_the_clocks_repeat_is_left_out_and_told(tmp_path: Path) -> None:
    rows = "".join(f"2026-10-25 {hour:02d}:00:00,1\n" for hour in (0, 1, 2, 3, 4))
    reading = Reading(BASIC, zone=zoneinfo.ZoneInfo("Europe/Berlin"))
    recorded = csvfiles.read(write(tmp_path / "a.csv", f"ts,rps\n{rows}"), reading)
    assert "1 rows lie in an hour that the clocks skip or repeat" in recorded.notes[0].what
    assert recorded.series["a", Signal.ARRIVALS].known == 4


@pytest.mark.parametrize(
    ("unit", "values", "rates"),
    [
        (Unit.RATE, (1, 2, 3), [1, 2, 3]),
        (Unit.COUNT, (60, 120, 180), [1, 2, 3]),
        (Unit.TOTAL, (1000, 1120, 60), [NAN, 2, 1]),
    ],
)
def test_units(tmp_path: Path, unit: Unit, values: tuple[int, ...], rates: list[float]) -> None:
    rows = "".join(f"{60 * i},{value},7\n" for i, value in enumerate(values))
    reading = Reading(mapped("time=ts, requests=n, in_flight=busy"), unit)
    recorded = csvfiles.read(write(tmp_path / "a.csv", f"ts,n,busy\n{rows}"), reading)
    np.testing.assert_allclose(recorded.series["a", Signal.ARRIVALS].values, rates)
    assert recorded.series["a", Signal.IN_FLIGHT].values.tolist() == [7, 7, 7]  # a state has no unit to convert
    assert any("fell 1 times" in note.what for note in recorded.notes) is (unit is Unit.TOTAL)


def test_a_column_is_read_once_for_all_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a thousand targets would else be read a thousand times."""
    rows = "".join(f"{BEGUN + 60 * i},t{k},{i + k}.5\n" for k in range(20) for i in range(3))
    asked: list[str] = []
    numbers = columns.numbers

    def counted(frame: Any, column: str, *, path: Path) -> np.ndarray:  # noqa: ANN401  (pandas here brings rules for frames)
        asked.append(column)
        return numbers(frame, column, path=path)

    monkeypatch.setattr(columns, "numbers", counted)
    found = csvfiles.read(
        write(tmp_path / "a.csv", f"ts,t,rps\n{rows}"), Reading(mapped("time=ts,target=t,requests=rps"))
    )
    assert found.series["t19", Signal.ARRIVALS].values.tolist() == [19.5, 20.5, 21.5]
    assert len(asked) <= 2  # once more to see whether all are whole


def test_a_column_of_targets_makes_as_many_series(tmp_path: Path) -> None:
    text = "ts,app,rps\n0,a,1\n0,b,5\n60,a,2\n60,b,6\n"
    recorded = csvfiles.read(write(tmp_path / "x.csv", text), Reading(mapped("time=ts,target=app,requests=rps")))
    assert {key[0]: one.values.tolist() for key, one in recorded.series.items()} == {"a": [1, 2], "b": [5, 6]}


@pytest.mark.parametrize(
    ("columns", "text", "complaint"),
    [
        ("time=ts", "ts\n1\n", "needs time=COLUMN and a signal"),
        ("requests=rps", "rps\n1\n", "needs time=COLUMN"),
        ("time=ts,speed=x", "ts,x\n1,1\n", "speed=x: write role=column; the roles are time"),
        ("time=ts,requests=qps", "ts,rps\n1,1\n", "no column 'qps'; it has ts, rps"),
        ("time=ts,requests=rps", "ts,rps\nyesterday,1\n", "line 2, column ts: 'yesterday' is no time"),
        ("time=ts,requests=rps", "ts,rps\n2026-01-01T00:00Z,1\n2026-01-01T00:01,1\n", "line 3.*has no time zone"),
        ("time=ts,target=t,requests=rps", "ts,t,rps\n0,a,1\n60,,1\n", "line 3, column t: '' names no target"),
        ("time=ts,requests=rps", "ts,rps\n0,1\n0,2\n", "fewer than two different times"),
        ("time=ts,requests=a,arrivals=b", "ts,a,b\n0,1,2\n", "gives a role twice"),
        ('time=ts,requests=r(x{a="1",b="2"})', "ts,r\n0,1\n", "is given by its number, as in requests=#2"),
        ("time=ts,requests=#3", "ts,rps\n0,1\n", "no column '#3'; it has ts, rps"),
        ("time=ts,requests=rps", "ts,rps\n0,1\n60,2\n,3\n", "line 4, column ts: '' is no number.*delete the row"),
        ("time=ts,requests=rps", "ts,rps\n0,1\n60,2\nTotal,3\n", "line 4, column ts: 'Total' is no number"),
        ("time=ts,requests=rps", "ts,rps\n0,1\ninf,2\n60,3\n", "line 3, column ts: 'inf' is no number"),
        ("time=ts,requests=rps", "ts,rps\n0,1\n60,1e300\n", r"line 3, column rps: '1e300' is more than 3e\+38"),
        ("time=ts,requests=rps", 'ts,rps\n0,1\n60,"2,055.5"\n', "'2,055.5' is no finite number: write a point before"),
        ("time=ts,requests=rps", "ts;rps\n0;1\n60;2,5\n", "'2,5' is no finite number: write a point before"),
        ("time=ts,requests=rps", "ts,rps\n0,1\n60,2,3\n", "rows of as many cells"),
        ("time=ts,requests=rps", "ts,rps\n0,1,5\n60,2,5\n", "rows have more cells than the header line has names"),
        (
            "time=ts,requests=rps",
            "ts,rps,rps \n0,1,1\n60,2,2\n",
            "header line has 'rps' twice; give each column a name",
        ),
        (
            "time=ts,requests=rps",
            f"ts,rps\n1767,1\n{BEGUN},2\n{BEGUN + 60},3\n{BEGUN + 120},4\n",
            "first time, 1767 s,",
        ),
    ],
)
def test_a_csv_that_cannot_be_used_says_why(tmp_path: Path, columns: str, text: str, complaint: str) -> None:
    with pytest.raises(FloorcastError, match=complaint):
        csvfiles.read(write(tmp_path / "a.csv", text), Reading(mapped(columns)))


def test_a_negative_rate_is_zero_and_a_negative_state_or_count_is_unknown(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "ts,rps,busy\n0,1,1\n60,-2,-1\n120,3,3\n180,3,3\n240,3,3\n")
    recorded = csvfiles.read(file, Reading(mapped("time=ts,requests=rps,in_flight=busy")))
    assert recorded.series["a", Signal.ARRIVALS].values[:3].tolist() == [1, 0, 3]
    assert recorded.series["a", Signal.IN_FLIGHT].values[:3].tolist() == [1, 1, 3]  # carried over what is not known
    told = [(note.where, note.what) for note in recorded.notes]
    assert ("a.csv: busy", "1 of 5 rows are negative: taken as unknown") in told
    counts = tracefiles.read([write(tmp_path / "b.csv", "minute,requests\n0,60\n1,-1\n2,60\n")])
    np.testing.assert_equal(counts.series["b", Signal.ARRIVALS].values, [1, NAN, 1])


def test_a_spike_is_cut_down_in_rates_and_stays_in_counts(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "ts,n\n" + "".join(f"{60 * i},{6e6 if i == 5 else 60}\n" for i in range(10)))
    mapping = mapped("time=ts,requests=n")
    rates, counts = (csvfiles.read(file, Reading(mapping, unit)) for unit in (Unit.RATE, Unit.COUNT))
    assert rates.series["a", Signal.ARRIVALS].values.max() == 1200
    assert counts.series["a", Signal.ARRIVALS].values.max() == 1e5
    assert any("1 of 10 rows stand alone" in note.what for note in rates.notes)
    assert not any("stand alone" in note.what for note in counts.notes)


def doubts(file: Path, columns: str, unit: Unit) -> list[str]:
    return [one.what for one in csvfiles.read(file, Reading(mapped(columns), unit)).notes if one.doubtful]


def test_whole_numbers_that_are_read_as_a_rate_are_asked_about(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.csv", "ts,n,rps,zero,t\n1767225600,60,1.5,0,100\n1767225660,,2,0,200\n1767225720,65,3,0,300\n"
    )
    assert doubts(file, "time=ts,requests=n,tokens_in=t", Unit.RATE) == [
        "all whole numbers, read as requests a second; --unit count reads them as requests a row",
        "all whole numbers, read as tokens a second; --unit count reads them as tokens a row",
    ]
    assert doubts(file, "time=ts,requests=n", Unit.COUNT) == []
    assert doubts(file, "time=ts,requests=rps", Unit.RATE) == []
    assert doubts(file, "time=ts,requests=zero", Unit.RATE) == []
    assert doubts(file, "time=ts,in_flight=n", Unit.RATE) == []  # what is in flight is whole


def test_a_total_that_falls_often_is_asked_about_and_one_that_is_restarted_is_not(tmp_path: Path) -> None:
    counts = write(tmp_path / "a.csv", "ts,n\n" + "".join(f"{BEGUN + 60 * i},{5 + i % 2}\n" for i in range(100)))
    assert doubts(counts, "time=ts,requests=n", Unit.TOTAL) == [
        "fell 49 times in 100 rows: is it a count a row? --unit count reads it so"
    ]
    total = write(tmp_path / "b.csv", "ts,n\n" + "".join(f"{BEGUN + 60 * i},{9 * (i % 150)}\n" for i in range(600)))
    assert doubts(total, "time=ts,requests=n", Unit.TOTAL) == []


@pytest.mark.parametrize(
    "word",
    ["", "n/a", "N/A", "NA", "<NA>", "#N/A", "#NA", "nan", "NaN", "-nan", "NAN", "null", "NULL", "Null", "None", "NONE",
     "1.#QNAN", "  "],
)  # fmt: skip
def test_spellings_of_unknown(tmp_path: Path, word: str) -> None:
    file = write(tmp_path / "a.csv", f"minute,requests\n0,60\n1,{word}\n2,60\n3,60\n")
    np.testing.assert_equal(tracefiles.read([file]).series["a", Signal.ARRIVALS].values, [1, NAN, 1, 1])


@pytest.mark.parametrize("word", ["-", "?", "missing", "unknown", "inf", "1,5", "nil", "no data"])
def test_any_other_text_is_refused(tmp_path: Path, word: str) -> None:
    file = write(tmp_path / "a.csv", f'minute,requests\n0,60\n1,"{word}"\n2,60\n')
    with pytest.raises(HistoryError, match=r"line 3, column requests: .* is no finite number"):
        tracefiles.read([file])
