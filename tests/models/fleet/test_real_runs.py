"""The gates: a simulator is believed when it repeats what was measured on real engines and on another simulator."""

import dataclasses
import json
import statistics

import numpy as np
import pytest

from models.fleet import profiles, replay
from models.fleet.profiles import Profile, StepLaw
from models.fleet.requests import Requests
from tests.models.fleet import cases


def near(simulated: float, real: float, share: float) -> bool:
    return abs(simulated / real - 1) <= share


# ------------------------------------------------------------------------ vLLM 0.19, RTX 4090, KV saturated, preempting
def test_the_real_run_on_an_rtx_4090_is_repeated_with_no_parameter_fitted_to_it() -> None:
    rows = cases.rows("serving", "vllm_0.19_rtx4090", "requests.csv")
    sent, first, last = (
        np.array([float(row[name]) for row in rows]) for name in ("queued_s", "first_token_s", "last_token_s")
    )
    prompts, outputs = (np.array([int(row[name]) for row in rows]) for name in ("prompt_tokens", "output_tokens"))
    found = replay.replay(profiles.LLAMA_8B_RTX4090, Requests(sent, prompts, outputs))
    seconds = {
        "ttft_mean": (first - sent).mean(),
        "ttft_p99": np.quantile(first - sent, 0.99),
        "tpot_mean": ((last - first) / (outputs - 1)).mean(),
        "e2e_mean": (last - sent).mean(),
        "makespan": last.max() - sent.min(),
    }
    errors = {name: getattr(found, name) / real - 1 for name, real in seconds.items()}
    assert all(abs(error) <= 0.05 for error in errors.values()), errors
    seen = cases.rows("serving", "vllm_0.19_rtx4090", "timeseries.csv")
    assert found.peak_running == max(float(row["running"]) for row in seen) == 49
    assert abs(found.peak_waiting - max(float(row["waiting"]) for row in seen)) <= 2


# -------------------------------------------------------------------------------- vLLM 0.15, H100, published aggregates
def test_published_aggregates_of_a_real_h100_are_repeated() -> None:
    rng = np.random.default_rng(0)
    count = 4000
    given = Requests(np.cumsum(rng.exponential(1 / 8, count)), np.full(count, 547), np.full(count, 248))
    found = replay.replay(profiles.LLAMA_8B_H100, given)
    assert near(found.e2e_mean, 2.119, 0.15)
    assert near(found.tpot_mean, 0.0089, 0.10)
    assert near(found.ttft_mean, 0.040, 0.15)  # not a gate; alpha0 was calibrated to it


# --------------------------------------------------------------------------------------------- Vidur, another simulator
# Its steps are not those of our table (70B decodes in 26 ms where the table says 16), so its own step laws were found
# from its mean TTFT, TPOT and end-to-end times at every other rate (never from a p99). What is judged is the rest: the
# knee and TTFT p99 at the rates in between.
VIDUR = {
    "8b-a100-tp1": (profiles.LLAMA_8B_A100, StepLaw(8.7104, 2.9654, 0.069800, 0.001135, 1.00106e-4, 1.2053e-6)),
    "70b-h100-tp4": (profiles.LLAMA_70B_H100_TP4, StepLaw(21.131, 6.1581, 0.062762, 0.000864, 2.3216e-5, 9.0012e-6)),
    "34b-h100-tp2": (profiles.QWEN_32B_H100_TP2, StepLaw(10.566, 8.6203, 0.058301, 0.004824, 4.4003e-5, 2.1455e-6)),
}
KNEE = 1.0  # seconds of TTFT p99


def lengths(workload: str, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if workload == "azconv":
        given = cases.trace("azure_2023_conv")
        chosen = np.random.default_rng([seed, 100]).choice(len(given), count, replace=False)
        outputs = given.outputs[chosen]
        return np.minimum(given.prompts[chosen], 4096 - outputs), outputs
    prompt, output = workload.removeprefix("fix").split("_")
    return np.full(count, int(prompt)), np.full(count, int(output))


def simulated_p99(row: dict[str, str]) -> float:
    base, law = VIDUR[row["combo"]]
    rate, count = float(row["rate"]), int(float(row["n"]))
    found = []
    for seed in range(5):
        times = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))
        given = Requests(times, *lengths(row["workload"], count, seed))
        found.append(replay.replay(dataclasses.replace(base, law=law), given).ttft_p99)
    return statistics.median(found)


def test_the_other_simulator_has_its_knee_at_the_same_rate_and_the_same_ttft_p99() -> None:
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    seen: dict[str, int] = {}
    errors = []
    for row in cases.rows("serving", "vidur_results.csv"):
        groups.setdefault((row["combo"], row["workload"]), []).append(row)
        place = seen[row["combo"]] = seen.get(row["combo"], -1) + 1
        row["ours"] = str(simulated_p99(row))
        if place % 2:
            errors.append(abs(float(row["ours"]) / float(row["ttft_p99"]) - 1))
    assert len(groups) == 4
    for key, rows in groups.items():
        knees = [
            next((k for k, row in enumerate(rows) if float(row[name]) > KNEE), len(rows))
            for name in ("ours", "ttft_p99")
        ]
        assert abs(knees[0] - knees[1]) <= 1, (key, knees)
    assert statistics.median(errors) <= 0.15, errors


# ------------------------------------------------------------------------------- vLLM 0.32, CPU, tiny model: shape only
# Read off the sweep's slowest rate: 1.68 ms a lone step, 17 ms with a prompt in it, 0.157 s for a whole answer; and off
# 17 rps: 8.6 ms a step with about twelve sequences.
CPU = Profile(
    "cpu", "tiny", StepLaw(a=1.1, w=0.1, d=0.05, b=0.55, c=0, q=0), 512 * 32, "vLLM 0.32 on one core", block=32,
    max_num_seqs=64,
)  # fmt: skip


def test_the_cpu_sweep_has_its_shape() -> None:
    sweep = [json.loads(line) for line in cases.data("serving", "vllm_0.32_cpu_sweep.jsonl").read_text().splitlines()]
    real_knee = min(row["rate"] for row in sweep if row["wait_max"] > 0)
    assert 14 < real_knee <= 20
    found = {}
    for row in sweep:
        given = cases.drawn(row["rate"], int(row["n"]) * 4, seed=1, prompt=300, output=82)
        found[row["rate"]] = replay.replay(CPU, given)
    # without load a request takes what it took (one call of the real one is noisy)
    assert near(found[2.0].e2e_mean, 0.157, 0.5)
    calm, busy = [found[rate] for rate in (2.0, 5.0, 8.0, 11.0)], [found[rate] for rate in (20.0, 25.0)]
    assert all(each.preemptions == 0 and each.peak_running < 64 for each in calm)
    assert all(each.preemptions > 0 and each.peak_waiting > 10 for each in busy)
    assert found[14.0].ttft_p99 < 1 < found[20.0].ttft_p99


def test_a_replay_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no requests"):
        replay.replay(cases.PLAIN, cases.drawn(1, 5).select(slice(0, 0)))
    with pytest.raises(ValueError, match="none of the 1 requests fits 1000"):
        replay.replay(cases.PLAIN, cases.requests((0.0, 5000, 1)))
