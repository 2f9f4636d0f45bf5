"""What must hold between keys: one function a promise, all of them run, so that one look shows every problem."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from models.capacity import sizes
from predictor.settings import durations
from predictor.targets import Kind, Mode

if TYPE_CHECKING:  # the settings run the checks
    from predictor.settings.root import Settings
    from predictor.settings.workloads import Defaults

Place: TypeAlias = tuple[str | int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Contradiction:
    """Where, and the sentence that goes there: value, bound and remedy."""

    place: Place
    text: str


class ContradictionsError(ValueError):
    """All that was found at once."""

    def __init__(self, found: Sequence[Contradiction]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(one.text for one in found))


Check: TypeAlias = "Callable[[Settings], Iterator[Contradiction]]"


def once_each(found: Sequence[Contradiction]) -> tuple[Contradiction, ...]:
    """Leaves out what a target merely took over from the defaults, where it was found already."""
    common = {(one.place[1:], one.text) for one in found if one.place[0] == "defaults"}
    return tuple(one for one in found if one.place[0] != "targets" or (one.place[2:], one.text) not in common)


def targets_differ(settings: "Settings") -> Iterator[Contradiction]:
    """No workload twice: two rows would undo each other's writes. The kind does not tell them apart in the metrics."""
    seen: dict[str, int] = {}
    for number, target in enumerate(settings.targets):
        first = seen.setdefault(target.key, number)
        if first != number:
            text = f"{target.key!r} is targets[{first}] already; name each workload once"
            yield Contradiction(("targets", number, "name"), text)


def series_differ(settings: "Settings") -> Iterator[Contradiction]:
    """In a Prometheus the series of two workloads that serve one model in one namespace cannot be told apart."""
    if settings.source.kind != "prometheus":
        return
    seen: dict[tuple[str, str, str], str] = {}
    for number, target in enumerate(settings.targets):
        first = seen.setdefault((target.namespace, target.engine, target.model), target.key)
        if target.model and first != target.key:
            text = (
                f"{target.model!r} is served by {first} in the same namespace too, and Prometheus cannot tell their"
                " series apart; give one another served model name, or set source.kind to scrape"
            )
            yield Contradiction(("targets", number, "model"), text)


def queries_are_asked(settings: "Settings") -> Iterator[Contradiction]:
    """Queries of one's own go to a Prometheus; pages are read without any."""
    if settings.signals and settings.source.kind == "scrape":
        named = ", ".join(settings.signals)
        text = f"queries for {named} have no effect while source.kind is scrape; remove them or set it to prometheus"
        yield Contradiction(("signals",), text)


def capacity_is_known(settings: "Settings") -> Iterator[Contradiction]:
    """What one replica carries is said once; a target that is controlled needs it said."""
    for place, common in _everyone(settings):
        capacity = common.capacity
        if capacity.concurrency is not None and capacity.knee is not None:
            text = (
                f"concurrency {capacity.concurrency:g} and knee {capacity.knee:g} are both given; give one:"
                " concurrency is knee / (1 + headroom)"
            )
            yield Contradiction((*place, "capacity"), text)
        unknown = capacity.concurrency is None and capacity.knee is None and not capacity.load_tests
        if place[0] == "targets" and unknown and (common.mode or settings.mode) is settings.mode is Mode.CONTROL:
            text = "is missing; set it, here or in defaults, to the requests one replica serves at once"
            yield Contradiction((*place, "capacity", "concurrency"), text)


def load_tests_tell(settings: "Settings") -> Iterator[Contradiction]:
    """Load tests say all that is asked, and take no other figures beside them."""
    for place, common in _everyone(settings):
        capacity = common.capacity
        if not capacity.load_tests:
            continue
        for name in ("concurrency", "knee", "throughput", "duration"):
            if (value := getattr(capacity, name)) is not None:
                text = f"{value:g} is given beside load_tests, which say it too; keep one of them"
                yield Contradiction((*place, "capacity", name), text)
        try:
            sizes.fitted([one.test for one in capacity.load_tests])
        except ValueError as error:
            text = f"{error}; add such tests, or give knee and throughput instead"
            yield Contradiction((*place, "capacity", "load_tests"), text)


def quantiles_agree(settings: "Settings") -> Iterator[Contradiction]:
    """Lowering is never more anxious than raising, and nothing is asked for that is not forecast."""
    highest = max(settings.forecast.quantiles)
    for place, common in _everyone(settings):
        upper, lower = common.quantiles.raising, common.quantiles.lowering
        if lower > upper:
            text = f"{lower:g} is above quantiles.raise, {upper:g}; the floor would be raised and never lowered again"
            yield Contradiction((*place, "quantiles", "lower"), text)
        if upper > highest:
            text = f"{upper:g} is above the highest of forecast.quantiles, {highest:g}; add it there or lower it"
            yield Contradiction((*place, "quantiles", "raise"), text)


def money_is_whole(settings: "Settings") -> Iterator[Contradiction]:
    """A quantile from money takes both costs, and no other way to say it."""
    for place, common in _everyone(settings):
        given = common.quantiles
        costs = {"miss_cost": given.miss_cost, "idle_cost": given.idle_cost}
        missing = [name for name, cost in costs.items() if cost is None]
        if len(missing) == 1:
            (other, cost) = next((name, cost) for name, cost in costs.items() if cost is not None)
            text = f"{cost:g} needs quantiles.{missing[0]}, which is not set; set both or neither"
            yield Contradiction((*place, "quantiles", other), text)
        elif not missing and "raise_" in given.model_fields_set:
            text = f"{given.raise_:g} is given beside miss_cost and idle_cost, which say {given.raising:.3g}; keep one"
            yield Contradiction((*place, "quantiles", "raise"), text)


def kinds_are_known(settings: "Settings") -> Iterator[Contradiction]:
    """A kind is one that is known, or its resource is given."""
    known = ", ".join(Kind)
    for number, target in enumerate(settings.targets):
        if target.kind not in set(Kind) and not target.resource:
            text = f"{target.kind!r} is none of {known}; correct it, or name its resource as plural.version.group"
            yield Contradiction(("targets", number, "kind"), text)
        elif target.kind in set(Kind) and target.resource:
            text = f"{target.resource!r} is given for kind {target.kind}, whose resource is known; leave it out"
            yield Contradiction(("targets", number, "resource"), text)


def pools_exist(settings: "Settings") -> Iterator[Contradiction]:
    """A pool that a target joins is one."""
    for place, common in _everyone(settings):
        if common.gpus.pool and common.gpus.pool not in settings.gpu_pools:
            known = ", ".join(settings.gpu_pools) or "none"
            text = f"{common.gpus.pool!r} is no entry of gpu_pools; add it there, known: {known}"
            yield Contradiction((*place, "gpus", "pool"), text)


def bounds_agree(settings: "Settings") -> Iterator[Contradiction]:
    """The minimum is not above the maximum."""
    for place, common in _everyone(settings):
        if common.minimum > common.maximum:
            text = f"{common.minimum} is above maximum, {common.maximum}; lower it or raise maximum"
            yield Contradiction((*place, "minimum"), text)


def forecast_grows(settings: "Settings") -> Iterator[Contradiction]:
    """Quantiles grow, seasons fit the history."""
    quantiles, span = settings.forecast.quantiles, settings.history.span
    if any(a >= b for a, b in itertools.pairwise(quantiles)):
        yield Contradiction(("forecast", "quantiles"), f"{list(quantiles)} does not grow; sort it, each value once")
    for number, season in enumerate(settings.forecast.seasons):
        if season >= span:
            text = f"{durations.written(season)} does not fit history.span, {durations.written(span)}; drop it or raise"
            yield Contradiction(("forecast", "seasons", number), f"{text} history.span above it")


def times_nest(settings: "Settings") -> Iterator[Contradiction]:
    """Pairs of durations of which the first must not be longer than the second."""
    loops, history, forecast = settings.loops, settings.history, settings.forecast
    prometheus = settings.source.prometheus
    pairs = (
        ("source.prometheus.timeout", prometheus.timeout, "source.prometheus.budget", prometheus.budget),
        ("loops.fast", loops.fast, "loops.slow", loops.slow),
        ("loops.deadline", loops.deadline, "loops.slow", loops.slow),
        ("history.carry", history.carry, "forecast.level_window", forecast.level_window),
        ("history.step", history.step, "forecast.level_window", forecast.level_window / 10),
        ("forecast.level_window", forecast.level_window, "history.span", history.span),
        ("forecast.score_window", forecast.score_window, "history.span", history.span),
    )
    for name, short, bound, long in pairs:
        if short is not None and short > long:
            tenth = "a tenth of " if name == "history.step" else ""
            text = f"{durations.written(short)} is longer than {tenth}{bound}, {durations.written(long)}; shorten it"
            yield Contradiction(tuple(name.split(".")), f"{text} or lengthen {bound}")


def credentials_are_whole(settings: "Settings") -> Iterator[Contradiction]:
    """Keys that only mean something together."""
    prometheus, cluster, scaler = settings.source.prometheus, settings.kubernetes, settings.external_scaler
    places = (
        (("source", "prometheus"), "username", prometheus.username, "password_file", prometheus.password_file),
        (("source", "prometheus"), "password_file", prometheus.password_file, "username", prometheus.username),
        (("source", "prometheus"), "cert_file", prometheus.cert_file, "key_file", prometheus.key_file),
        (("source", "prometheus"), "key_file", prometheus.key_file, "cert_file", prometheus.cert_file),
        (("kubernetes",), "server", cluster.server, "token_file", cluster.token_file),
        (("kubernetes",), "token_file", cluster.token_file, "server", cluster.server),
        (("kubernetes",), "ca_file", cluster.ca_file, "server", cluster.server),
        (("external_scaler",), "cert_file", scaler.cert_file, "key_file", scaler.key_file),
        (("external_scaler",), "key_file", scaler.key_file, "cert_file", scaler.cert_file),
        (("external_scaler",), "client_ca_file", scaler.client_ca_file, "cert_file", scaler.cert_file),
    )
    for section, name, value, other, partner in places:
        if value is not None and partner is None:
            text = f"{str(value)!r} needs {'.'.join((*section, other))}, which is not set; set both or neither"
            yield Contradiction((*section, name), text)


def one_way_in(settings: "Settings") -> Iterator[Contradiction]:
    """One credential for each server, not two that may disagree."""
    prometheus, cluster = settings.source.prometheus, settings.kubernetes
    if prometheus.bearer_token_file and prometheus.username:
        text = f"{str(prometheus.bearer_token_file)!r} is given beside username; keep one of the two"
        yield Contradiction(("source", "prometheus", "bearer_token_file"), text)
    if cluster.server and (cluster.kubeconfig or cluster.context):
        text = f"{cluster.server!r} is given beside a kubeconfig or context; keep one of the two ways"
        yield Contradiction(("kubernetes", "server"), text)


def leases_outlive_their_holders(settings: "Settings") -> Iterator[Contradiction]:
    """The last write of one holder is over before the next one begins."""
    election, longest = settings.leader_election, settings.kubernetes.request_timeout
    if not election.enabled:
        return
    if election.retry >= election.renew:
        text = (
            f"{durations.written(election.retry)} is not below renew, {durations.written(election.renew)}: the lease"
            " would be over before it is renewed; a fifth of renew suits"
        )
        yield Contradiction(("leader_election", "retry"), text)
    if election.renew + longest > election.lease or election.renew >= election.lease:
        text = (
            f"{durations.written(election.renew)} and kubernetes.request_timeout, {durations.written(longest)}, are"
            f" together longer than lease, {durations.written(election.lease)}: a write could still be under way when"
            " another replica begins; shorten one or lengthen lease"
        )
        yield Contradiction(("leader_election", "renew"), text)


def ports_differ(settings: "Settings") -> Iterator[Contradiction]:
    """Two servers, two ports."""
    scaler, port = settings.external_scaler, settings.server.port
    if scaler.enabled and scaler.port == port != 0:
        yield Contradiction(("external_scaler", "port"), f"{port} is server.port too; give one of them another")


CHECKS: tuple[Check, ...] = (
    targets_differ,
    series_differ,
    queries_are_asked,
    capacity_is_known,
    load_tests_tell,
    quantiles_agree,
    money_is_whole,
    pools_exist,
    kinds_are_known,
    bounds_agree,
    forecast_grows,
    times_nest,
    credentials_are_whole,
    one_way_in,
    leases_outlive_their_holders,
    ports_differ,
)


def _everyone(settings: "Settings") -> "Iterator[tuple[Place, Defaults]]":
    """The defaults and every target, with their places."""
    yield ("defaults",), settings.defaults
    for number, target in enumerate(settings.targets):
        yield ("targets", number), target
