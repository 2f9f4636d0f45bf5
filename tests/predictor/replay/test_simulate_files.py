"""Files that `floorcast simulate` serves: both formats, with and without tokens, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from models.fleet import workload
from predictor.errors import ConfigurationError, HistoryError
from predictor.replay import simulatefiles, simulateload

TOKENS = (1000.0, 200.0)
EVEN = "".join(f"{10 * i},{7 if i % 2 else ''}\n" for i in range(720))  # every second length is not known


def file_of(folder: Path, text: str) -> Path:
    (folder / "chat.csv").write_text(text)
    return folder / "chat.csv"


def test_a_file_of_requests_and_one_of_counts(tmp_path: Path) -> None:
    times = np.sort(np.random.default_rng(1).uniform(0, 7200, 500))
    requests = tmp_path / "r.csv"
    requests.write_text("arrival_s,prompt_tokens,output_tokens\n" + "\n".join(f"{t},10,10" for t in times))
    counts = tmp_path / "c.csv"
    counts.write_text(
        "minute,requests,prompt_tokens,output_tokens\n" + "\n".join(f"{m},10,100,100" for m in range(120))
    )
    for path in (requests, counts):
        load = simulatefiles.read(path, hours=1.0, seed=1, tokens=TOKENS)
        assert (load.start, load.end) == (3600.0, 7200.0)
        assert len(load.source.between(load.start, load.end)) > 100
        assert load.arrivals.values.mean() * 7200 == pytest.approx(len(load.source.between(0, 7200)), rel=0.1)
        assert load.lengths.prompts.mean() == pytest.approx(10, rel=0.15)
        assert load.notes == ()


@pytest.mark.parametrize(
    "text",
    [
        "minute,requests\n" + "".join(f"{m},30\n" for m in range(120)),
        "minute, requests\n" + "".join(f"{m}, 30\n" for m in range(120)),
        "minute,requests,prompt_tokens,output_tokens\n" + "".join(f"{m},30,,\n" for m in range(120)),
        "arrival_s\n" + "".join(f"{2 * i}\n" for i in range(3600)),
        "arrival_s,model\n" + "".join(f"{2 * i},a\n" for i in range(3600)),
    ],
)
def test_requests_whose_tokens_nobody_knows_have_the_given_means(text: str, tmp_path: Path) -> None:
    load = simulatefiles.read(file_of(tmp_path, text), hours=1.0, seed=1, tokens=(400.0, 50.0))
    assert load.lengths.prompts.mean() == pytest.approx(400, rel=0.1)
    assert load.lengths.outputs.mean() == pytest.approx(50, rel=0.1)
    assumed = [note.what for note in load.notes if "tokens on average" in note.what]
    assert [what.split(" tokens")[0] for what in assumed] == ["unknown: requests have 400", "unknown: requests have 50"]


def test_a_request_without_a_length_is_drawn_like_the_others(tmp_path: Path) -> None:
    load = simulatefiles.read(file_of(tmp_path, f"arrival_s,prompt_tokens\n{EVEN}"), hours=1, seed=1, tokens=TOKENS)
    assert load.lengths.prompts.mean() == pytest.approx(7, rel=0.1)
    assert "unknown for 360 of 720 requests: drawn around 7, the others' mean" in [one.what for one in load.notes]


def test_a_minute_that_lacks_in_a_file_of_counts_moves_no_other(tmp_path: Path) -> None:
    rows = "".join(f"{m},{600 if m == 100 else 60}\n" for m in range(120) if not 20 <= m < 40)
    load = simulatefiles.read(file_of(tmp_path, f"minute,requests\n{rows}"), hours=1.0, seed=1, tokens=TOKENS)
    assert len(load.source.between(6000, 6060)) == 600
    assert any("1 gaps, 20 of 120 points" in note.what for note in load.notes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\x00", "cannot be read as CSV"),
        (b"a,b\n1,2\n", "columns are a, b: needs arrival_s"),
        (b"minute,requests,prompt_tokens,output_tokens\n0,1,1,1\n1,1,1,1\n", "shorter than"),
        (b"arrival_s\n0\n60\n", "shorter than"),
        (b"minute,requests\n0,x\n1,2\n", "line 2, column requests: 'x' is no finite number"),
        (b"arrival_s,prompt_tokens\n0,many\n", "line 2, column prompt_tokens: 'many' is no finite number"),
        (b"minute,requests\n" + b"".join(b"%d,0\n" % m for m in range(60)), "has no requests"),
        (b"minute,requests\n" + b"".join(b"%g,9\n" % (1.5 * m) for m in range(60)), "rows are 90 s apart"),
    ],
)
def test_files_that_cannot_be_used_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(HistoryError, match=message):
        simulatefiles.read(path, hours=1.0, seed=1, tokens=TOKENS)


def test_counts_may_have_their_requests_in_bursts(tmp_path: Path) -> None:
    rows = "".join(f"{minute},120\n" for minute in range(60))
    load = simulatefiles.read(file_of(tmp_path, f"minute,requests\n{rows}"), hours=1.0, seed=1, tokens=TOKENS)
    bursts = simulateload.bursty(load, 4.0)
    found = [workload.burstiness(one.source.between(900.0, 3600.0).times) for one in (load, bursts)]
    assert found == [pytest.approx(1.0, rel=0.1), pytest.approx(4.0, rel=0.25)]
    assert [len(one.source.between(900.0, 3600.0)) for one in (load, bursts)] == [45 * 120] * 2
    assert "--burstiness: gaps inside a step of 60 s have a coefficient of variation of 4" in [
        f"{note.where}: {note.what}" for note in bursts.notes
    ]


def test_a_burstiness_that_cannot_be_had_is_refused_with_its_remedy(tmp_path: Path) -> None:
    requests = simulatefiles.read(file_of(tmp_path, f"arrival_s,prompt_tokens\n{EVEN}"), hours=1, seed=1, tokens=TOKENS)
    with pytest.raises(
        ConfigurationError, match=r"--burstiness: 2: .* says when each request came; leave the flag out"
    ):
        simulateload.bursty(requests, 2.0)
    generated = simulateload.generated("rate=1,days=0.1", hours=0.5, seed=1)
    with pytest.raises(ConfigurationError, match="a generated workload has its own; write cv=2 in --generate"):
        simulateload.bursty(generated, 2.0)
    rows = "".join(f"{minute},12\n" for minute in range(60))
    counts = simulatefiles.read(file_of(tmp_path, f"minute,requests\n{rows}"), hours=1.0, seed=1, tokens=TOKENS)
    with pytest.raises(ConfigurationError, match=r"--burstiness: 0 must lie in 0.05\.\.100; 1 is Poisson"):
        simulateload.bursty(counts, 0.0)
