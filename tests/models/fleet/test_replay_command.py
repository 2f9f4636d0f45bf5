import dataclasses
import gzip
import json
from pathlib import Path

import pytest

from benchmarks.replay.__main__ import main
from models.fleet.replay import Figures

TEXT = "queued_s,prompt_tokens,output_tokens\n0,100,10\n1,200,20\n"


def test_it_prints_every_figure_for_a_named_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.csv").write_text(TEXT)
    assert main(["llama-8b-h100", str(tmp_path / "r.csv")]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()] == [field.name for field in dataclasses.fields(Figures)]


def test_it_takes_a_profile_from_a_file_gzipped_requests_and_answers_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    law = {"a": 10, "w": 0, "d": 0, "b": 0, "c": 0, "q": 0}
    (tmp_path / "mine.json").write_text(json.dumps({"law": law, "kv_tokens": 1000}))
    (tmp_path / "r.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert main([str(tmp_path / "mine.json"), str(tmp_path / "r.csv.gz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["requests"], found["finished"]) == (2, 2)
    assert found["e2e_mean"] == pytest.approx((0.1 + 0.2) / 2)  # a step of 10 ms for each token


@pytest.mark.parametrize(
    ("profile", "text", "message"), [("x", TEXT, "'x' is unknown"), ("llama-8b-h100", "a,b\n", "missing")]
)
def test_it_says_what_it_cannot_use(
    profile: str, text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.csv").write_text(text)
    assert main([profile, str(tmp_path / "r.csv")]) == 2
    assert message in capsys.readouterr().err
