from benchmarks.fleet import __main__ as bench


def test_it_simulates_a_million_requests_a_second_of_one_replica_and_half_of_that_of_a_fleet_of_32() -> None:
    count = 200_000
    alone, together = bench.drawn(count, bench.PER_REPLICA), bench.drawn(count, 32 * bench.PER_REPLICA)
    bench.one_replica(alone.select(slice(0, 100)))  # compiled, if it was not
    assert count / bench.best_of(3, lambda: bench.one_replica(alone)) > 1_000_000
    assert count / bench.best_of(3, lambda: bench.whole_fleet(together, 32)) > 500_000
