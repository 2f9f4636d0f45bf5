"""Load tests of one replica, at several sizes of requests."""

from typing import Annotated

import pydantic

from models.capacity.sizes import LoadTest, Sizes
from predictor.settings.section import Number, Section, key

_Positive = Annotated[float, Number, pydantic.Field(gt=0)]


class LoadTestSettings(Section):
    """The highest load of one replica that met the objectives, and the requests it was made with."""

    prompt: _Positive = key(..., "Mean tokens of a prompt.", remedy="write the mean input length of the test")
    output: _Positive = key(..., "Mean tokens generated.", remedy="write the mean output length of the test")
    throughput: _Positive = key(
        ..., "Requests a second it completed.", remedy="write the requests a second of the highest load that was met"
    )
    concurrency: _Positive = key(
        ..., "Requests in flight.", remedy="write the requests in flight at the highest load that was met"
    )

    @property
    def test(self) -> LoadTest:
        """What the capacity model takes."""
        return LoadTest(Sizes(self.prompt, self.output), self.throughput, self.concurrency)
