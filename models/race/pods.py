"""The pods of a deployment one by one, for policies that look at each."""

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from models.fleet import looking
from models.fleet.deployment import Deployment, Phase
from models.policy.protocol import Pod
from models.series import Floats

Page = tuple[float | None, float | None, float | None]  # running, waiting, KV usage
Key = tuple[Phase, bool, Page]
NOTHING_SHOWN: Page = (None, None, None)


class Shown:
    """The pods as they were shown last, by number: one of which nothing has changed is the same object again."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[Key, Pod]] = {}

    def show(self, target: Deployment, each: Floats) -> tuple[Pod, ...]:
        """The pods of a deployment, with what the newest scrapes said; `each` is that of a look at its pool."""
        pages = _pages(each)
        before, now, at, shown = self._before, {}, target.pool.now, []
        for pod in target.pods:
            waits = pod.phase is not Phase.READY and pod.waits(at)
            key = (pod.phase, waits, pages.get(pod.slot, NOTHING_SHOWN))
            seen = before.get(pod.number)
            if seen is None or seen[0] != key:
                seen = (key, _pod(pod.number, key))
            now[pod.number] = seen
            shown.append(seen[1])
        self._before = now
        return tuple(shown)


class Pods(Sequence[Pod]):
    """The pods one by one, looked at when a policy asks for them; before time passes."""

    def __init__(self, target: Deployment, each: Callable[[], Floats], shown: Shown) -> None:
        self._target, self._each, self._shown = target, each, shown
        self._seen: tuple[Pod, ...] | None = None

    def __len__(self) -> int:
        return len(self._target.pods)

    @overload
    def __getitem__(self, index: int) -> Pod: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Pod]: ...
    def __getitem__(self, index: int | slice) -> Pod | Sequence[Pod]:
        return self._all()[index]

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._all())

    def _all(self) -> tuple[Pod, ...]:
        if self._seen is None:
            self._seen = self._shown.show(self._target, self._each())
        return self._seen


def _pages(each: Floats) -> dict[float, Page]:
    """What the newest scrape of each ready replica said, by slot; without those it missed."""
    rows = each[looking.EACH_SLOT : looking.EACH_KV + 1].tolist()
    return {slot: (running, waiting, kv) for slot, known, running, waiting, kv in zip(*rows, strict=True) if known}


def _pod(number: int, key: Key) -> Pod:
    phase, pending, (running, waiting, kv) = key
    return Pod(
        str(number),
        ready=phase is Phase.READY,
        pending=pending,
        deleting=phase is Phase.DRAINING,
        running=running,
        waiting=waiting,
        kv_usage=kv,
    )
