"""The past out of a Prometheus: in pieces, with holes where nothing is known."""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import pytest

from models.series import Series
from models.signals import Cause, Signal, Unknown
from predictor.signals import past, prometheus
from tests.fakes.prometheus_answers import CATALOG, LABELS, NOW, TARGET, always, healthy, settings
from tests.fakes.prometheus_api import Answer, PrometheusApi, Request, refusal, result

AGE = "count_over_time("  # what asks how old samples are


@pytest.fixture
def api() -> Iterator[PrometheusApi]:
    with PrometheusApi(healthy) as served:
        yield served


def grid_answer(request: Request, *, limit: int = 11_000) -> Answer:
    """As a Prometheus answers range queries: as many points as asked, no more than the limit."""
    if AGE in request.query:
        return result([], kind="matrix")
    start, end, step = (int(request.form[name]) for name in ("start", "end", "step"))
    if (end - start) // step + 1 > limit:
        return refusal(400, "bad_data", f"exceeded maximum resolution of {limit} points per timeseries")
    points = [[time, str(time % 1000)] for time in range(start, end + 1, step)]
    return result([{"metric": LABELS, "values": points}], kind="matrix")


def history(api: PrometheusApi, *, since: float, until: float, step: float) -> Series | Unknown:
    source = prometheus.PrometheusSource(settings(api), CATALOG)
    try:
        return source.history([TARGET], Signal.IN_FLIGHT, since=since, until=until, step=step)[TARGET.key]
    finally:
        source.close()


def test_history_comes_in_pieces_without_seams(api: PrometheusApi) -> None:
    api.respond = grid_answer
    answer = history(api, since=NOW - 86400 * 8, until=NOW, step=30)
    assert isinstance(answer, Series)
    assert len(answer) == 8 * 2880 + 1
    np.testing.assert_array_equal(answer.values, answer.times % 1000)
    pieces = [request for request in api.requests if AGE not in request.query]
    assert len(pieces) == 3
    assert all(
        value.isdigit() for request in pieces for value in map(request.form.get, ("start", "end", "step")) if value
    )


def test_history_is_asked_in_smaller_pieces_where_the_server_allows_fewer_points(api: PrometheusApi) -> None:
    api.respond = lambda request: grid_answer(request, limit=1500)
    answer = history(api, since=NOW - 86400 * 2, until=NOW, step=30)
    assert isinstance(answer, Series)
    assert answer.known == len(answer) == 5761


def test_history_that_is_too_much_even_in_the_smallest_pieces_is_empty_and_not_zero(api: PrometheusApi) -> None:
    api.respond = always(refusal(422, "execution", "query processing would load too many samples"))
    answer = history(api, since=NOW - 3600, until=NOW, step=30)
    assert isinstance(answer, Unknown)


def test_history_with_a_piece_that_cannot_be_had_has_a_hole_there(api: PrometheusApi) -> None:
    bad = NOW - 7200

    def respond(request: Request) -> Answer:
        inside = int(request.form["start"]) <= bad <= int(request.form["end"])
        return refusal(422, "execution", "corrupt block") if inside else grid_answer(request)

    api.respond = respond
    answer = history(api, since=NOW - 86400, until=NOW, step=30)
    assert isinstance(answer, Series)
    holes = np.isnan(answer.values)
    assert 1 <= holes.sum() <= 20
    assert holes[np.searchsorted(answer.times, bad)]


def test_history_of_a_server_that_is_down_is_unknown_so_that_it_is_asked_again(api: PrometheusApi) -> None:
    api.respond = always(refusal(503, "unavailable", "starting"))
    answer = history(api, since=NOW - 3600, until=NOW, step=30)
    assert isinstance(answer, Unknown)
    assert answer.cause is Cause.SOURCE_DOWN


def test_history_with_missing_parts_is_partial(api: PrometheusApi) -> None:
    api.respond = always(result([], kind="matrix", warnings=["store gone"]))
    answer = history(api, since=NOW - 3600, until=NOW, step=30)
    assert isinstance(answer, Unknown)
    assert answer.cause is Cause.PARTIAL


def test_what_is_no_number_in_the_history_is_a_hole(api: PrometheusApi) -> None:
    points = [[NOW - 60, "NaN"], [NOW - 30, "-1"], [NOW, "+Inf"], [NOW - 90, "4"]]
    api.respond = lambda request: (
        result([], kind="matrix")
        if AGE in request.query
        else result([{"metric": LABELS, "values": points}], kind="matrix")
    )
    answer = history(api, since=NOW - 90, until=NOW, step=30)
    assert isinstance(answer, Series)
    assert answer.values[0] == 4
    assert np.isnan(answer.values[1:]).all()


def test_a_step_with_a_fraction_is_asked_in_whole_seconds(api: PrometheusApi) -> None:
    api.respond = grid_answer
    answer = history(api, since=NOW - 30, until=NOW, step=2.5)
    assert isinstance(answer, Series)
    assert (answer.start, answer.step, len(answer)) == (NOW - 30, 2.5, 13)
    assert {request.form["step"] for request in api.requests} == {"2"}
    # Whole even seconds are asked: 2.5 shows what was at 2, 5 what was at 4.
    assert answer.values[:3].tolist() == [970, 972, 974]


@pytest.mark.parametrize("ours", [3600, -3600, 47])
def test_history_goes_by_the_servers_clock_as_readings_do(api: PrometheusApi, ours: int) -> None:
    """Our clock is so many seconds ahead. What the server has of its own future is nothing."""
    source = prometheus.PrometheusSource(settings(api), CATALOG)
    source.read([TARGET], now=NOW + ours)
    api.respond = grid_answer
    found = source.history([TARGET], Signal.IN_FLIGHT, since=NOW + ours - 7200, until=NOW + ours, step=30)[TARGET.key]
    source.close()
    assert isinstance(found, Series)
    assert (found.start % 30, found.step) == (0, 30)
    shift = (found.values - found.times) % 1000  # the server tells its own time
    assert np.unique(shift).tolist() == [-round(ours / 30) * 30 % 1000]
    assert NOW + ours - 30 < found.end <= NOW + ours


def test_history_backwards_is_a_mistake_of_the_caller(api: PrometheusApi) -> None:
    with pytest.raises(ValueError, match="since before until"):
        history(api, since=NOW, until=NOW - 60, step=30)
    with pytest.raises(ValueError, match="step must be positive"):
        history(api, since=NOW - 60, until=NOW, step=math.nan)


def test_how_old_samples_are_is_asked_once_for_all_signals_of_a_history_and_anew_for_the_next(
    api: PrometheusApi,
) -> None:
    source = prometheus.PrometheusSource(settings(api), CATALOG)
    try:
        for until, asked in ((NOW, 1), (NOW, 1), (NOW + 60, 2)):
            for signal in (Signal.IN_FLIGHT, Signal.WAITING):
                source.history([TARGET], signal, since=NOW - 3600, until=until, step=30)
            assert sum(AGE in request.query for request in api.requests) == asked
        source.read([TARGET], now=NOW)
        before = len(api.requests)
        source.history([TARGET], Signal.IN_FLIGHT, since=NOW - 3600, until=NOW + 60, step=30)
        assert any(AGE in request.query for request in api.requests[before:])
    finally:
        source.close()


def stale_from(request: Request) -> Answer:
    """7 at each point; those after `NOW - 60` rest on the sample of that moment. Ages in both ways of asking."""
    times = range(int(NOW) - 120, int(NOW) + 1, 30)
    if "timestamp(" in request.query:
        points = [[time, str(min(time, NOW - 60))] for time in times]
    elif AGE in request.query:
        points = [[time, str(int(time - min(time, NOW - 60) <= 30))] for time in times]
    else:
        points = [[time, "7"] for time in times]
    return result([{"metric": LABELS, "values": points}], kind="matrix")


@pytest.mark.parametrize("fresh", [None, "max by ($by) (timestamp(a{$sel} or b{$sel}))"])
def test_points_that_rest_on_old_samples_are_unknown_however_the_catalogue_asks(
    api: PrometheusApi, fresh: str | None
) -> None:
    api.respond = stale_from
    engine = CATALOG[TARGET.engine]
    engines = {TARGET.engine: dataclasses.replace(engine, fresh=fresh) if fresh else engine}
    source = prometheus.PrometheusSource(settings(api), engines)
    answer = source.history([TARGET], Signal.IN_FLIGHT, since=NOW - 120, until=NOW, step=30)[TARGET.key]
    source.close()
    assert isinstance(answer, Series)
    np.testing.assert_array_equal(answer.values, [7, 7, 7, 7, np.nan])
    assert any((AGE in request.query) is (fresh is None) for request in api.requests[1:])


def test_the_whole_catalogue_is_asked_the_fast_way() -> None:
    for engine in CATALOG.values():
        assert not engine.fresh or past.SAMPLED.search(engine.fresh), engine.name
