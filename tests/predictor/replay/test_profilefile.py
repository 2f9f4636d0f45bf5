import json
from pathlib import Path

import pytest

from models.fleet import profiles
from predictor.errors import ConfigurationError
from predictor.replay import profilefile


def test_a_profile_has_a_name_or_stands_in_a_file(tmp_path: Path) -> None:
    assert profilefile.read("llama-8b-h100") is profiles.LLAMA_8B_H100
    path = tmp_path / "mine.json"
    path.write_text(profilefile.EXAMPLE)
    mine = profilefile.read(str(path))
    assert (mine.name, mine.kv_tokens, mine.law.w, mine.calibrated) == ("mine", 400_000, 2, False)
    path.write_text(json.dumps(json.loads(profilefile.EXAMPLE) | {"max_num_seqs": 64, "calibrated": True}))
    assert (profilefile.read(str(path)).max_num_seqs, profilefile.read(str(path)).calibrated) == (64, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "write it like"),
        ("[]", "write it like"),
        ('{"kv_tokens": 10}', "missing 6 required"),
        (profilefile.EXAMPLE.replace('"gpus": 1', '"gpu_count": 1'), "gpu_count"),
        (profilefile.EXAMPLE.replace('"gpus": 1', '"gpus": 0'), "gpus is 0: must be at least 1"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=message) as raised:
        profilefile.read(str(path))
    assert "mine.json" in str(raised.value)


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match="use one of llama-8b-h100"):
        profilefile.read("a toaster")
    with pytest.raises(ConfigurationError, match=r"nowhere.json: No such file"):
        profilefile.read("nowhere.json")
