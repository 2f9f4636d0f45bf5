"""Fixtures of the chart's tests. `helm` needs no cluster; what does is in tests/cluster/test_chart_*.py."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import chart


class Chart:
    """The chart as `helm template` renders it; `Chart(...)(values)` are the objects."""

    def __init__(self, helm: chart.Helm) -> None:
        self.helm = helm
        self._known: dict[str, str] = {}

    def __call__(self, values: dict[str, Any] | None = None, *, namespace: str = "floorcast") -> list[dict[str, Any]]:
        key = yaml.safe_dump([namespace, values])
        if key not in self._known:
            place = ("template", "floorcast", str(chart.CHART), f"--namespace={namespace}")
            self._known[key] = self.helm(*place, values=values or {})
        return [one for one in yaml.load_all(self._known[key], yaml.CSafeLoader) if one]


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Chart:
    """Call it with values; it returns the objects. The first use builds Helm, if the cache has none."""
    return Chart(chart.Helm(Path(tmp_path_factory.mktemp("helm"))))
