"""The signal catalogue: for each engine, what to ask a Prometheus and what to look for on a pod's own page."""

import dataclasses
import math
import string
from collections.abc import Iterable, Mapping

from models.signals import Signal
from predictor.signals import recipes
from predictor.targets import Target

USUAL_MODEL_LABEL = "model_name"  # what a configured model label stands for; engines that call it otherwise keep theirs
INTERVALS_IN_WINDOW = 4  # a rate needs two samples; with four intervals two scrapes may fail
LOOKBACK = 300  # seconds for which a Prometheus shows a series that has stopped, and so how old its newest sample is

SeriesKey = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Labels:
    """Label names that depend on how Prometheus scrapes; `model` replaces "model_name" only."""

    namespace: str = "namespace"
    pod: str = "pod"
    model: str = USUAL_MODEL_LABEL


@dataclasses.dataclass(frozen=True, slots=True)
class Windows:
    """How far queries look back, whole seconds: `rate` for rates, `long` for quantiles and means."""

    rate: int = 120
    long: int = 300

    @classmethod
    def for_interval(cls, scrape_interval: float) -> "Windows":
        """Windows that hold enough scrapes: 8 intervals for rates (2 min at 15 s), 20 for quantiles and means.

        Rates look back no further than the age of a sample is known, as far as four intervals leave that: a longer
        window goes on showing the rate of a series that has stopped, falling, when nothing says any more that it has.
        """
        fewest = INTERVALS_IN_WINDOW * scrape_interval
        rate = math.ceil(max(min(2 * fewest, LOOKBACK), fewest))
        return cls(rate=rate, long=max(math.ceil(20 * scrape_interval), rate))


@dataclasses.dataclass(frozen=True, slots=True)
class Alternative:
    """One way to ask for a signal: a PromQL template, and the name by which reports call it."""

    name: str
    query: str


@dataclasses.dataclass(frozen=True, slots=True)
class Asking:
    """What turns templates into queries: names of labels, lengths of windows, more matchers for every selector."""

    labels: Labels = dataclasses.field(default_factory=Labels)
    windows: Windows = dataclasses.field(default_factory=Windows)
    selector: str = ""  # like 'cluster="prod"'


@dataclasses.dataclass(frozen=True, slots=True)
class Engine:
    """One engine of the catalogue.

    Attributes:
        name: what a target's `engine` says.
        model: label with the served model's name; empty where the engine has none: then a namespace is one target.
        folds_case: the engine writes model names in lower case.
        ranks: labels that tell real series of one pod apart, such as one engine a data-parallel rank.
        repeats: labels of ranks that repeat the same numbers on one page; the first is read.
        select: matchers that every selector carries.
        fresh: query for the Unix time of the newest sample of each target; empty where there is none.
        duplicates: query that counts series of each target which two scrape jobs report; empty where there is none.
        queries: by signal, what to ask; the first alternative that knows a target wins.
        pages: by signal, what to compute from the pods' pages; likewise.
    """

    name: str
    model: str = ""
    folds_case: bool = False
    ranks: tuple[str, ...] = ()
    repeats: tuple[str, ...] = ()
    select: str = ""
    fresh: str = ""
    duplicates: str = ""
    queries: Mapping[Signal, tuple[Alternative, ...]] = dataclasses.field(default_factory=dict)
    pages: Mapping[Signal, tuple[recipes.Recipe, ...]] = dataclasses.field(default_factory=dict)

    def model_label(self, labels: Labels) -> str:
        """Label with the model's name in this Prometheus; empty where there is none."""
        return labels.model if self.model == USUAL_MODEL_LABEL else self.model

    def key_of(self, target: Target) -> SeriesKey:
        """What the target's series carry: namespace and model, the latter empty for an engine without such a label."""
        return target.namespace, self._folded(target.model) if self.model else ""

    def key_in(self, metric: Mapping[str, str], labels: Labels) -> SeriesKey:
        """The same, read from a series."""
        model = str(metric.get(self.model_label(labels), "")) if self.model else ""
        return str(metric.get(labels.namespace, "")), self._folded(model)

    def render(self, query: str, asking: Asking) -> str:
        """The PromQL of a template (see PLACEHOLDERS)."""
        labels = asking.labels
        model = self.model_label(labels)
        by = [labels.namespace, *([model] if model else [])]
        select = ",".join(part for part in (self.select, asking.selector) if part)
        text = query if select else query.replace("$sel,", "")  # a selector may not begin with a comma
        return string.Template(text).substitute(
            by=", ".join(by),
            each=", ".join([labels.namespace, labels.pod, *by[1:], *self.ranks]),
            sel=select,
            w=f"{asking.windows.rate}s",
            ws=str(asking.windows.rate),
            l=f"{asking.windows.long}s",
            namespace=labels.namespace,
            pod=labels.pod,
            model=model,
        )

    def _folded(self, model: str) -> str:
        return model.lower() if self.folds_case else model


PLACEHOLDERS = {
    "by": "labels of one target: namespace and model",
    "each": "labels of one real series: namespace, pod, model and the engine's ranks",
    "sel": "matchers every selector carries",
    "w": "window of rates, like 120s",
    "ws": "the same in seconds, to divide a delta by",
    "l": "longer window, of quantiles and means",
    "namespace": "name of the namespace label",
    "pod": "name of the pod label",
    "model": "name of the model label",
}

Catalog = Mapping[str, Engine]


def shared(targets: Iterable[Target], engine: Engine) -> Mapping[SeriesKey, tuple[Target, ...]]:
    """Targets of the engine whose series cannot be told apart, by what the series carry."""
    groups: dict[SeriesKey, list[Target]] = {}
    for target in targets:
        if target.engine == engine.name:
            groups.setdefault(engine.key_of(target), []).append(target)
    return {key: tuple(group) for key, group in groups.items() if len(group) > 1}
