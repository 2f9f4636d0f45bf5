import numpy as np
import pytest

from models.fleet import histogram


def test_bucket_bounds_are_inclusive_and_counts_cumulate() -> None:
    buckets = histogram.BucketHistogram((0.1, 1.0))
    buckets.add(np.array([0.1, 0.5, 2.0]), np.array([1, 2, 3]))
    assert buckets.cumulative() == [1, 3, 6]
    assert buckets.sum == pytest.approx(0.1 + 1.0 + 6.0)


def test_quantiles_are_within_two_percent() -> None:
    values = np.random.default_rng(1).lognormal(0, 1, 10_000)
    fine = histogram.QuantileHistogram()
    fine.add(values)
    for q in (0.5, 0.9, 0.99):
        assert fine.quantile(q) == pytest.approx(np.quantile(values, q), rel=0.021)


def test_merged_histograms_are_the_histogram_of_all_values() -> None:
    values = np.random.default_rng(2).lognormal(0, 1, 1000)
    whole, left, right = (histogram.QuantileHistogram() for _ in range(3))
    whole.add(values)
    left.add(values[:300])
    right.add(values[300:])
    left.merge(right)
    assert left.count == whole.count == 1000
    assert [left.quantile(q) for q in (0.1, 0.5, 0.9)] == [whole.quantile(q) for q in (0.1, 0.5, 0.9)]


def test_an_empty_histogram_has_no_quantile() -> None:
    assert histogram.QuantileHistogram().quantile(0.5) is None
