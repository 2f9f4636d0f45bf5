"""Metrics of made-up pods: lines that are level or rise evenly, as a page or as a past in OpenMetrics."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

MODEL = "meta-llama/Llama-3.1-8B-Instruct"


@dataclasses.dataclass(frozen=True)
class Line:
    """A series whose value at time t is `start + slope * t`."""

    name: str
    start: float = 0.0
    slope: float = 0.0
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def at(self, time: float) -> float:
        return self.start + self.slope * time

    def labelled(self, **labels: str) -> "Line":
        return dataclasses.replace(self, labels={**self.labels, **labels})

    @property
    def series(self) -> str:
        inside = ",".join(f'{name}="{value}"' for name, value in self.labels.items())
        return f"{self.name}{{{inside}}}" if inside else self.name


def level(name: str, value: float, **labels: str) -> Line:
    return Line(name, start=value, labels=labels)


def rising(name: str, per_second: float, *, start: float = 1000.0, **labels: str) -> Line:
    return Line(name, start=start, slope=per_second, labels=labels)


def histogram(name: str, rates: Mapping[str, float], *, total: float = 0.0, **labels: str) -> list[Line]:
    """Buckets that fill at the given cumulative rates, their count, and a sum that grows by `total` a second."""
    buckets = [rising(f"{name}_bucket", rate, **labels, le=bound) for bound, rate in rates.items()]
    return [*buckets, rising(f"{name}_count", rates["+Inf"], **labels), rising(f"{name}_sum", total, **labels)]


def page(lines: Iterable[Line], *, at: float = 0.0) -> str:
    """A page as an engine shows it."""
    return "".join(
        f"# HELP {name} Made up.\n# TYPE {name} {'histogram' if group[0].name != name else 'gauge'}\n"
        + "".join(f"{line.series} {line.at(at)!r}\n" for line in group)
        for name, group in _families(lines).items()
    )


def past(lines: Sequence[Line], times: Sequence[float], *, zero: float) -> str:
    """Samples of the lines at the given Unix times, where `zero` is the lines' own time 0."""
    scraped = [dataclasses.replace(line, labels=_without_empty(line.labels)) for line in lines]
    by_name = sorted(scraped, key=lambda line: line.name)
    samples = [f"{line.series} {line.at(time - zero)!r} {time}" for line in by_name for time in times]
    return "\n".join([*samples, "# EOF", ""])


def _without_empty(labels: Mapping[str, str]) -> Mapping[str, str]:
    """A label with no value is no label: Prometheus drops it when it scrapes, promtool does not."""
    return {name: value for name, value in labels.items() if value}


def _families(lines: Iterable[Line]) -> dict[str, list[Line]]:
    families: dict[str, list[Line]] = {}
    for line in lines:
        name = line.name
        for suffix in ("_bucket", "_count", "_sum"):
            name = name.removesuffix(suffix)
        families.setdefault(name, []).append(line)
    return families
