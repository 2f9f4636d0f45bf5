"""Binary heaps in fixed arrays: the sequences of a batch by the step at which they finish."""

from models.fleet.jit import Ints, compiled


@compiled
def _rise(heap: Ints, place: int, entry: int) -> None:
    while place > 0:
        parent = (place - 1) >> 1
        if heap[parent] <= entry:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = entry


@compiled
def _sink(heap: Ints, count: int, place: int, entry: int) -> None:
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= entry:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = entry


@compiled
def push(heap: Ints, count: int, entry: int) -> None:
    """Adds an entry to a heap of `count`."""
    _rise(heap, count, entry)


@compiled
def pop(heap: Ints, count: int) -> None:
    """Takes the smallest entry, heap[0], from a heap of `count`."""
    _sink(heap, count - 1, 0, heap[count - 1])


@compiled
def remove(heap: Ints, count: int, entry: int) -> None:
    """Takes an entry from anywhere in a heap of `count`; looks at every place, as preemption is rare."""
    place = 0
    while heap[place] != entry:
        place += 1
    last = heap[count - 1]
    if place == count - 1:
        return
    if place > 0 and last < heap[(place - 1) >> 1]:
        _rise(heap, place, last)
    else:
        _sink(heap, count - 1, place, last)
