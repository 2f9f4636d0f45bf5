"""The one place from which statsforecast is imported in the service.

Its dependency utilsforecast imports numba where that is installed and then never uses it: 56 MB of the service's memory
for a name. It is built to go without, so numba is not to be had while it is imported, and is again afterwards.
"""

import sys

_loaded = sys.modules.get("numba")
if _loaded is None:
    sys.modules["numba"] = None  # type: ignore[assignment]  # documented: an import of it then raises
try:
    from statsforecast.models import SimpleExponentialSmoothingOptimized
finally:
    if _loaded is None:
        del sys.modules["numba"]

__all__ = ["SimpleExponentialSmoothingOptimized"]
