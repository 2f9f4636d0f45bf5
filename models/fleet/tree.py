"""The smallest of many numbers that change one at a time: a tournament over a power of two of leaves.

`tree` has shape (2 x leaves,); the leaves are its second half and each other node holds the smaller of its children.
"""

from models.fleet.jit import Floats, compiled


@compiled
def place(tree: Floats, leaf: int, value: float) -> None:
    """Gives a leaf a new value."""
    node = (tree.shape[0] >> 1) + leaf
    tree[node] = value
    node >>= 1
    while node >= 1:
        smaller = min(tree[2 * node], tree[2 * node + 1])
        if tree[node] == smaller:
            return
        tree[node] = smaller
        node >>= 1


@compiled
def smallest(tree: Floats) -> int:
    """The leaf with the smallest value; of equals the first."""
    leaves = tree.shape[0] >> 1
    node = 1
    while node < leaves:
        node *= 2
        if tree[node] != tree[node >> 1]:
            node += 1
    return node - leaves
