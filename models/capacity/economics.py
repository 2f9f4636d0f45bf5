"""How sure to be, from money: the newsvendor's ratio."""

import math


def quantile(*, miss: float, idle: float) -> float:
    """Probability with which load should find its replica: miss / (miss + idle).

    With one more replica than quantile q of the load needs, it idles with probability q and is missing with 1 - q; the
    costs balance at this q (Arrow, Harris and Marschak, Econometrica 19 (1951) 250-272).

    Args:
        miss: what one replica missing for an hour costs, in any money.
        idle: what one replica idling for an hour costs, in the same.

    Raises:
        ValueError: a cost is not positive.
    """
    for name, value in (("miss", miss), ("idle", idle)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value!r}: must be a positive amount of money an hour")
    return miss / (miss + idle)
