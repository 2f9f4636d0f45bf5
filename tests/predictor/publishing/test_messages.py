"""The committed messages are those of the .proto, made by the command that docs/publishing.md names."""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
PROTO = "predictor/publishing/externalscaler.proto"


def test_the_committed_messages_are_current(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    subprocess.run([*command, PROTO], cwd=CHECKOUT, check=True)  # noqa: S603  (our own command)
    for name in ("externalscaler_pb2.py", "externalscaler_pb2.pyi"):
        committed = (CHECKOUT / "predictor/publishing" / name).read_text()
        assert committed == (tmp_path / "predictor/publishing" / name).read_text(), name
