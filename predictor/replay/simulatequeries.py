"""Which of a user's own metrics and PromQL queries the simulated fleet can answer, and how they are read.

Understood: sums, means, maxima and counts over the pods of known metrics; rates of known counters; the 0.95 quantile
of known histograms; numbers, + - * / between all of these, and `or vector(0)`. Anything else is refused with its place.
"""

import dataclasses
import re
from typing import NoReturn

from models.peers import queries
from models.peers.queries import Over, Query
from models.signals import Signal
from predictor.replay import simulatemetrics
from predictor.replay.simulatemetrics import Kind, Metric, RefusedError
from predictor.settings import durations

# Labels that say whose series it is; any other picks some of the requests, which are all alike here.
WHOSE = {
    "app", "cluster", "container", "deployment", "engine", "endpoint", "envoy_cluster_name", "exported_namespace",
    "exported_pod", "exported_service", "host", "ingress", "instance", "job", "kubernetes_namespace", "model",
    "model_name", "namespace", "node", "pod", "reporter", "release", "service",
}  # fmt: skip
BY_POD = {"pod", "instance", "exported_pod", "node"}
SIGNS = "+-*/"


@dataclasses.dataclass(frozen=True, slots=True)
class Understood:
    """A query as it will be read, and how that differs from what Prometheus would say."""

    query: Query
    doubts: tuple[str, ...] = ()


def tells_whose(label: str) -> bool:
    """Whether a label says whose series it is, and not which requests are counted."""
    return label in WHOSE or label.startswith("destination_")


def read(text: str) -> Understood:
    """A PromQL query.

    Raises:
        RefusedError: something in it is not understood.
    """
    reader = _Reader(text)
    query = reader.whole()
    return Understood(query, tuple(dict.fromkeys(reader.doubts)))


_LABELS = r"""\{(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^}"'])*\}"""
_TOKEN = re.compile(
    rf"(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)|(?P<name>[a-zA-Z_:][\w:]*)|(?P<labels>{_LABELS})"
    r"|(?P<window>\[[^\]]*\])|(?P<sign>[()+\-*/,])|(?P<other>\S)"
)
_LABEL = re.compile(r"""([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)\s*(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""")


@dataclasses.dataclass(frozen=True, slots=True)
class _Series:
    """A selector of series, one a pod; `window` in seconds where it is a rate, 0 for a gauge."""

    name: str
    metric: Metric
    window: float = 0.0
    factor: float = 1.0


class _Reader:
    """A recursive descent over the part of PromQL that the fleet can answer."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"#[^\n]*", "", text)
        self._tokens = [(str(match.lastgroup), match.group()) for match in _TOKEN.finditer(text)]
        self._place = 0
        self.doubts: list[str] = []

    def whole(self) -> Query:
        """All of it."""
        found = self._alternatives()
        if self._kind:
            self._refuse()
        return found

    # --------------------------------------------------------------------------------------------------------- tokens
    @property
    def _kind(self) -> str:
        return self._tokens[self._place][0] if self._place < len(self._tokens) else ""

    @property
    def _next(self) -> str:
        return self._tokens[self._place][1] if self._kind else ""

    def _take(self) -> str:
        found = self._next
        self._place += 1
        return found

    def _takes(self, text: str) -> bool:
        if self._next != text:
            return False
        self._place += 1
        return True

    def _must(self, text: str) -> None:
        if not self._takes(text):
            self._refuse(f"{text!r} was expected there")

    def _refuse(self, why: str = "") -> NoReturn:
        where = f"at {self._next!r}" if self._kind else "at its end"
        after = " ".join(text for _, text in self._tokens[max(self._place - 3, 0) : self._place])
        remedy = why or (
            "understood are sum, avg, max and count of known metrics, rate(...[5m]), histogram_quantile(0.95, ...), "
            "numbers, + - * / and 'or vector(0)'; write the query with these in a copy of the file"
        )
        raise RefusedError(f"the query is not understood {where}{f', after {after!r}' if after else ''}: {remedy}")

    # ----------------------------------------------------------------------------------------------------- one number
    def _alternatives(self) -> Query:
        found = self._sum()
        while self._takes("or"):
            if self._takes("on"):
                self._must("(")
                self._must(")")
            found = queries.Otherwise(found, self._sum())
        return found

    def _sum(self) -> Query:
        found = self._product()
        while self._next in {"+", "-"}:
            sign = self._take()
            found = queries.Combined(found, sign, self._product())
        return found

    def _product(self) -> Query:
        found = self._one()
        while self._next in {"*", "/"}:
            sign = self._take()
            found = queries.Combined(found, sign, self._one())
        return found

    def _one(self) -> Query:
        if self._kind == "number":
            return queries.Number(float(self._take()))
        if self._takes("("):
            found = self._alternatives()
            self._must(")")
            return found
        if self._kind != "name":
            self._refuse()
        if self._next in {"vector", "scalar"}:
            self._take()
            return self._one()
        if self._takes("histogram_quantile"):
            return self._quantile()
        if self._next in {"rate", "irate", "increase"} or self._next.replace(":", "_") in simulatemetrics.KNOWN:
            self._refuse("this has one series a pod, and an autoscaler needs one number: write sum(...) around it")
        if self._next not in set(Over):
            self._refuse(self._unknown())
        return self._aggregated(Over(self._take()))

    def _unknown(self) -> str:
        """What is said of a name that is no known function here."""
        following = self._tokens[self._place + 1 : self._place + 2]
        if following == [("sign", "(")]:
            return ""
        try:
            simulatemetrics.metric(self._next)
        except RefusedError as error:
            return str(error)
        return ""

    def _aggregated(self, over: Over) -> Query:
        self._by()
        self._must("(")
        series = self._series()
        self._must(")")
        self._by()
        kinds = {one.metric.kind for one in series}
        if Kind.HISTOGRAM in kinds:
            self._refuse("buckets of a histogram are understood inside histogram_quantile(0.95, ...) alone")
        if kinds == {Kind.GAUGE}:
            return queries.Gauges(tuple(one.metric.signal for one in series), over)
        if Kind.GAUGE in kinds:
            self._refuse("a gauge and a rate are added pod by pod: write sum(...) + sum(...)")
        return self._rates(series, over)

    def _rates(self, series: list[_Series], over: Over) -> Query:
        if over not in {Over.SUM, Over.MEAN}:
            self._refuse(f"{over.value} of a rate is not known pod by pod; write sum(...) or avg(...)")
        found: Query | None = None
        for one in series:
            rate: Query = queries.Windowed(one.metric.signal, window=one.window, of_pods=one.metric.of_pods)
            if one.metric.signal is Signal.COMPLETIONS and not one.metric.of_pods:
                rate = queries.Otherwise(rate, queries.Number(0.0))  # a gateway's counter stands still without a pod
            if one.factor != 1:
                rate = queries.Combined(rate, "*", queries.Number(one.factor))
            found = rate if found is None else queries.Combined(found, "+", rate)
        assert found is not None  # noqa: S101  (a list of series has one at least)
        if over is Over.SUM:
            return found
        if not all(one.metric.of_pods for one in series):
            self._refuse("the mean over a gateway's series is no known number; write sum(...)")
        return queries.Combined(found, "/", queries.Gauges((Signal.IN_FLIGHT,), Over.COUNT))

    def _by(self, *, buckets: bool = False) -> None:
        if self._next not in {"by", "without"}:
            return
        if self._take() == "without":
            self._place -= 1
            self._refuse("'without' keeps unknown labels, perhaps one series a pod; write 'by (...)', or nothing")
        self._must("(")
        while not self._takes(")"):
            label = self._next
            if label in BY_POD:
                self._refuse("this leaves one series a pod, and an autoscaler needs one number; leave the label out")
            if label not in WHOSE and not (buckets and label == "le"):
                self._refuse("series that differ in this label are not told apart here; leave the label out")
            self._take()
            self._takes(",")

    def _quantile(self) -> Query:
        self._must("(")
        if self._kind != "number" or float(self._next) != 0.95:  # noqa: PLR2004  (the one the fleet knows)
            self._refuse("of a histogram the fleet knows the quantile 0.95 alone; write that, with its target")
        self._take()
        self._must(",")
        self._must("sum")
        self._by(buckets=True)
        self._must("(")
        series = self._series()
        self._must(")")
        self._by(buckets=True)
        self._must(")")
        if len(series) != 1 or series[0].metric.kind is not Kind.HISTOGRAM:
            self._refuse("histogram_quantile needs the buckets of one known histogram")
        return queries.Windowed(series[0].metric.signal, window=series[0].window)

    # ----------------------------------------------------------------------------------------------- one series a pod
    def _series(self) -> list[_Series]:
        found = self._some()
        while self._takes("+"):
            found = [*found, *self._some()]
        return found

    def _some(self) -> list[_Series]:
        if self._takes("("):
            found = self._series()
            self._must(")")
            return found
        if self._kind != "name":
            self._refuse()
        if self._next in {"rate", "irate", "increase"}:
            return [self._rate(self._take())]
        if self._tokens[self._place + 1 : self._place + 2] == [("sign", "(")]:
            self._refuse()
        name = self._next
        known = self._metric()
        if known.kind is not Kind.GAUGE:
            self._place -= 1
            self._refuse(f"{name!r} only ever grows: write rate({name}[1m])")
        return [_Series(name, known)]

    def _rate(self, function: str) -> _Series:
        self._must("(")
        name = self._next
        known = self._metric()
        if known.kind is Kind.GAUGE:
            self._place -= 1
            self._refuse(f"{name!r} is a gauge, which has no {function}; leave that out")
        if self._kind != "window":
            self._refuse("a rate needs a window, as [1m]")
        window = self._window()
        self._must(")")
        # irate looks at the last two samples, which the minute of an observation smooths.
        seconds = 0.0 if function == "irate" else window
        if seconds < queries.SEEN_OVER:
            self.doubts.append(f"{function}({name}) is looked at over {queries.SEEN_OVER:g} s, not {window:g} s")
        return _Series(name, known, max(seconds, 1.0), window if function == "increase" else 1.0)

    def _metric(self) -> Metric:
        """The metric at this place, with its labels."""
        if self._kind != "name":
            self._refuse()
        name = self._next
        try:
            found = simulatemetrics.metric(name)
        except RefusedError as error:
            self._refuse(str(error))
        self._take()
        if self._kind == "labels":
            self._labels()
        if found.doubt:
            self.doubts.append(f"{name} {found.doubt}")
        return found

    def _labels(self) -> None:
        for label in _LABEL.findall(self._next):
            if not tells_whose(label):
                self._refuse(
                    f"the label {label!r} picks some of the requests, which are all alike here; leave it out, with a "
                    "target for all of them"
                )
        self._take()

    def _window(self) -> float:
        text = self._next[1:-1].strip()
        try:
            found = float(durations.parse(text))
        except ValueError:
            self._refuse("this is no window; write one like [5m]")
        self._take()
        return found
