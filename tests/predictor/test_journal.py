"""The journal on disk: bounded, whole after a crash, and never in the way."""

import json
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import structlog

from predictor import journal
from predictor.journal import DAY, Bounds, Journal

WEEK = Bounds(seconds=7 * DAY, size=160_000)  # segments of 10 kB
TEXT = "x" * 960  # a record of about 1 kB


@pytest.fixture(autouse=True)
def _plain_logging() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def write(folder: Path, times: Sequence[float], bounds: Bounds = WEEK, *, text: str = TEXT) -> Journal:
    book = Journal(folder, bounds)
    for at in times:
        book.append({"at": at, "target": "llm/chat" if at % 2 else "llm/other", "text": text})
    book.close()
    return book


def times(folder: Path, **span: float) -> list[float]:
    return [one["at"] for one in journal.read(folder, **span)]


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_what_was_written_is_read_again_in_order_and_over_restarts(tmp_path: Path) -> None:
    write(tmp_path / "new", range(30))
    write(tmp_path / "new", range(30, 40))
    assert times(tmp_path / "new") == list(range(40))


def test_a_span_and_a_target_are_read_without_the_rest(tmp_path: Path) -> None:
    write(tmp_path, range(100))
    assert times(tmp_path, since=40, until=44) == [40, 41, 42, 43, 44]
    assert [one["at"] for one in journal.read(tmp_path, since=40, until=44, target="llm/chat")] == [41, 43]
    assert times(tmp_path / "none") == []


def test_size_is_bounded_and_the_oldest_go_first(tmp_path: Path) -> None:
    write(tmp_path, range(1000))
    kept = times(tmp_path)
    assert size(tmp_path) <= WEEK.size
    assert kept == list(range(1000 - len(kept), 1000))
    assert len(kept) > 130  # most of the room is used


def test_age_is_bounded(tmp_path: Path) -> None:
    write(tmp_path, [hour * 3600.0 for hour in range(240)], Bounds(seconds=3 * DAY, size=10_000_000), text="")
    kept = times(tmp_path)
    assert kept == [hour * 3600.0 for hour in range(240 - len(kept), 240)]
    assert 72 <= len(kept) <= 72 + 10  # a segment of a sixteenth goes when all in it is too old


def test_a_torn_last_line_is_passed_over_and_never_added_to(tmp_path: Path) -> None:
    write(tmp_path, [1, 2, 3])
    (segment,) = tmp_path.iterdir()
    segment.write_bytes(segment.read_bytes()[:-20])
    assert times(tmp_path) == [1, 2]
    write(tmp_path, [4, 5])
    assert times(tmp_path) == [1, 2, 4, 5]
    write(tmp_path, [1])  # begins in the same millisecond as the torn one: shares its file, after a new line
    assert times(tmp_path) == [1, 2, 1, 4, 5]


def test_what_is_no_record_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, [1])
    (segment,) = tmp_path.iterdir()
    segment.write_bytes(b'\xff\xfe\n[]\n{"at": "noon"}\n' + segment.read_bytes())
    (tmp_path / "journal-old.jsonl").write_text("{}")
    (tmp_path / "notes.txt").write_text("mine")
    assert times(tmp_path) == [1]
    write(tmp_path, range(1000))
    assert (tmp_path / "notes.txt").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full stands for a disk that is full")
def test_a_full_disk_is_told_once_counted_and_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = threading.Event()
    full.set()
    real = Path.open

    def open_full(self: Path, *args: object, **kwargs: object) -> object:
        return real(Path("/dev/full") if full.is_set() else self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "open", open_full)
    with structlog.testing.capture_logs() as logs:
        book = Journal(tmp_path, WEEK)
        for at in range(5):
            book.append({"at": at})
        while book.health.lost < 5:
            threading.Event().wait(0.01)
        full.clear()
        book.append({"at": 5})
        book.close()
    assert [one["event"] for one in logs] == [
        "the journal cannot be written, going on without",
        "the journal can be written again",
    ]
    assert "No space left on device" in logs[0]["problem"]
    assert times(tmp_path) == [5]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with structlog.testing.capture_logs() as logs:
        book = write(tmp_path / "file" / "journal", [1, 2])
    assert book.health.lost == 2
    assert len(logs) == 1


def test_a_disk_that_does_not_keep_up_loses_records_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "journal-000000000001000.jsonl"
    os.mkfifo(pipe)  # opening it blocks until somebody reads
    book = Journal(tmp_path, WEEK)
    for _ in range(journal.WAITING + 10):
        book.append({"at": 1.0})
    assert book.health.lost >= 8
    assert book.health.problem == "the disk does not keep up"
    book.close(within=0.01)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # lets the thread go
    os.close(reader)


def test_a_record_is_on_disk_as_soon_as_it_is_written(tmp_path: Path) -> None:
    book = Journal(tmp_path, WEEK)
    book.append({"at": 1.0, "odd": Path("x")})
    while not any(path.stat().st_size for path in tmp_path.iterdir()):
        threading.Event().wait(0.01)
    assert [json.loads(path.read_text()) for path in tmp_path.iterdir()] == [{"at": 1.0, "odd": "x"}]
    book.close()
