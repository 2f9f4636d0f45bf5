"""One's own HorizontalPodAutoscaler or ScaledObject as a policy: read from its manifest, field by field.

Nothing of an object is left out silently: what is not understood is refused with its place, its value and what to do;
what the simulated fleet shows otherwise than a cluster is noted.
"""

import collections
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from predictor.errors import ConfigurationError
from predictor.replay import simulatehpa, simulatekeda
from predictor.replay.simulatemanifest import HPA, SCALED_OBJECT, Manifest, Own
from predictor.settings import yamlfile

READERS = {HPA.name: (HPA, simulatehpa.policy), SCALED_OBJECT.name: (SCALED_OBJECT, simulatekeda.policy)}
TAKEN = f"--hpa takes a {HPA.name} or a {SCALED_OBJECT.name}"


def read(files: Sequence[Path]) -> tuple[Own, ...]:
    """Every HorizontalPodAutoscaler and ScaledObject of the files, in order.

    Raises:
        ConfigurationError: a file has none, or one that cannot be simulated: what of it, and the remedy.
    """
    found = [(path, own) for path in dict.fromkeys(files) for own in _of(path)]
    often = collections.Counter(own.name for _, own in found)
    named = [own if often[own.name] == 1 else dataclasses.replace(own, name=f"{own.name} ({path.stem})")
             for path, own in found]  # fmt: skip
    twice = [name for name, count in collections.Counter(own.name for own in named).items() if count > 1]
    if twice:
        raise ConfigurationError(f"--hpa: two objects are {twice[0]!r}; give one of them another metadata.name")
    return tuple(named)


def _of(path: Path) -> list[Own]:
    objects = list(_objects(path))
    found = [_policy(Manifest(path, one)) for one in objects if one.get("kind") in READERS]
    if not found:
        there = f"has only {', '.join(str(one.get('kind')) for one in objects)}" if objects else "is empty"
        raise ConfigurationError(f"{path}: {there}; {TAKEN}")
    return found


def _policy(given: Manifest) -> Own:
    kind, policy = READERS[given.kind]
    if given.version != kind.version:
        remedy = "; ask the cluster for that: kubectl get hpa.v2.autoscaling NAME -o yaml" if kind is HPA else ""
        raise given.refused("apiVersion", f"{given.version!r} must be {kind.version}{remedy}")
    return policy(given)


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, those in lists too, as kubectl get writes them."""
    for document in yamlfile.documents(path):
        if not isinstance(document, dict):
            raise ConfigurationError(f"{path}: is no Kubernetes object; {TAKEN}")
        items = document.get("items")
        yield from (one for one in items if isinstance(one, dict)) if isinstance(items, list) else [document]
