import collections
import dataclasses

import numpy as np
import pytest

from models.fleet import memory, profiles
from models.fleet.memory import PoolSettings
from models.fleet.profiles import StepLaw
from tests.models.fleet import cases

MEASURED = {
    ("Meta-Llama-3.1-8B", "h100_sxm", "1"): profiles.LLAMA_8B_H100,
    ("Meta-Llama-3.1-8B", "h200_sxm", "1"): profiles.LLAMA_8B_H200,
    ("Meta-Llama-3.1-8B", "a100_sxm", "1"): profiles.LLAMA_8B_A100,
    ("Meta-Llama-3.1-70B", "h100_sxm", "4"): profiles.LLAMA_70B_H100_TP4,
    ("Meta-Llama-3.1-70B", "h100_sxm", "8"): profiles.LLAMA_70B_H100_TP8,
    ("Meta-Llama-3.1-70B", "h200_sxm", "2"): profiles.LLAMA_70B_H200_TP2,
    ("Meta-Llama-3.1-70B", "h200_sxm", "4"): profiles.LLAMA_70B_H200_TP4,
}


def errors() -> dict[tuple[str, str], list[float]]:
    """Relative errors of the law by profile and kind of step; the tables know no engine overhead."""
    found: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
    for row in cases.rows("serving", "aic_step.csv"):
        profile = MEASURED.get((row["model"], row["system"], row["tp"]))
        if row["backend"] != "vllm" or profile is None:
            continue
        decoding, prefill = int(row["n_decode"]), int(row["prefill_tokens"])
        law = dataclasses.replace(profile.law, overhead=0)
        milliseconds = law.step(
            decoding=decoding, prefill=prefill, context=decoding * int(row["ctx"]), square=prefill**2 / 2
        )
        found[profile.name, row["kind"]].append(abs(milliseconds / float(row["step_ms"]) - 1))
    return found


def test_the_law_is_within_5_per_cent_of_the_measured_decode_steps_and_10_of_the_prefill_steps() -> None:
    found = {key: float(np.mean(values)) for key, values in errors().items()}
    assert len({name for name, _ in found}) == len(MEASURED)
    assert {
        key: error for key, error in found.items() if error > {"decode": 0.05, "prefill": 0.10}.get(key[1], 0.05)
    } == {}


def test_a_step_by_hand() -> None:
    law = StepLaw(a=4, w=3, d=0.01, b=0.1, c=0.001, q=0.0001, overhead=1, alpha0=18)
    # 4 + (3^4 + (0.01 x 400)^4)^(1/4) + 0.1 x 100 + 0.001 x 5000 + 0.0001 x 45000 + 1
    expected = 4 + (81 + 256) ** 0.25 + 10 + 5 + 4.5 + 1
    assert law.step(decoding=100, prefill=300, context=5000, square=45000) == pytest.approx(expected)


def test_the_compiled_constants_are_those_of_the_law() -> None:
    profile = profiles.LLAMA_8B_H100
    p = memory.allocate(profile, PoolSettings(), start=0.0).pool[0]
    assert p["base"][37] * 1e3 == pytest.approx(profile.law.step(decoding=37))


@pytest.mark.parametrize(("field", "value"), [("a", -1.0), ("c", float("nan")), ("q", float("inf"))])
def test_a_law_refuses_nonsense(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{field} is"):
        StepLaw(**({"a": 1, "w": 0, "d": 0, "b": 0, "c": 0, "q": 0} | {field: value}))


@pytest.mark.parametrize(
    ("field", "value"),
    [("block", 3), ("max_num_seqs", 0), ("max_num_seqs", 5000), ("token_budget", 8), ("kv_tokens", 1), ("gpus", 0)],
)
def test_a_profile_refuses_nonsense(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^{field} is {value}"):
        dataclasses.replace(cases.PLAIN, **{field: value})


def test_profiles_are_found_by_name_and_say_which_there_are() -> None:
    assert profiles.named("llama-8b-h100") is profiles.LLAMA_8B_H100
    with pytest.raises(ValueError, match="llama-70b-h200-tp4"):
        profiles.named("llama-9b")
