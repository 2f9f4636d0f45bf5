"""Kubeconfig files, one for each user of the control plane, and the tokens behind them."""

import base64
import secrets
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class User:
    """Somebody the API server knows by a token; `groups` decide what they may do."""

    name: str
    groups: tuple[str, ...]
    token: str


def user(name: str, *groups: str) -> User:
    """Make a user with a fresh token."""
    return User(name, groups, secrets.token_hex(16))


def token_file(path: Path, users: tuple[User, ...]) -> Path:
    """Write what `--token-auth-file` of the API server reads."""
    path.touch(mode=0o600)
    path.write_text("".join(f'{one.token},{one.name},{one.name},"{",".join(one.groups)}"\n' for one in users))
    return path


def write(path: Path, *, server: str, authority: Path, token: str) -> Path:
    """Write a kubeconfig for one server (its https address) and one token."""
    trust = base64.b64encode(authority.read_bytes()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "rig", "cluster": {"server": server, "certificate-authority-data": trust}}],
        "users": [{"name": "rig", "user": {"token": token}}],
        "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "rig"}}],
        "current-context": "rig",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content))
    return path
