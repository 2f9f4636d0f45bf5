"""The sentence that the README quotes is what the back-test says of that history."""

import re
from pathlib import Path

import pytest
import rich.progress

from predictor.replay import command
from predictor.replay.command import Asked
from tests.predictor.replay import histories

README = Path(__file__).resolve().parents[3] / "README.md"
FIGURE = re.compile(r"\d+(?:\.\d+)?")


def test_the_sentence_of_the_readme_is_said_of_busy_afternoons_with_a_surge_each_hour(tmp_path: Path) -> None:
    load = histories.daily(3, low=2, high=6) + histories.steep(3)
    rows = "".join(f"{minute},{round(value * 60)}\n" for minute, value in enumerate(load))
    (tmp_path / "chat.csv").write_text(f"minute,requests\n{rows}")
    asked = Asked(files=(tmp_path / "chat.csv",), throughput=1.0, warm_up="5m", slow=False, arguments=("--x",))
    with rich.progress.Progress(disable=True) as bar:
        said = command.made(asked, 1.8e9, bar).headline
    page = " ".join(README.read_text(encoding="utf-8").replace("\n>", "\n").split())
    quoted = re.search(FIGURE.sub(lambda _: r"\d+(?:\.\d+)?", re.escape(said).replace(r"\.", ".")), page)
    assert quoted is not None, said
    # Another processor adds up in another order: a digit may be rounded otherwise.
    figures = [float(figure) for figure in FIGURE.findall(quoted[0])]
    assert figures == pytest.approx([float(figure) for figure in FIGURE.findall(said)], abs=1)
