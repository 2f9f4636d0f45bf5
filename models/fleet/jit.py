"""The one place where numba is asked to compile.

Call `compiled` on a plain typed function; what it calls has to be compiled as well.
"""

# ruff: noqa: ANN401  (the typing and lowering objects of numba have no public types)
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numba.core.cgutils
import numba.extending
import numpy as np
import numpy.typing as npt

Function = TypeVar("Function", bound=Callable[..., Any])

# What the compiled functions pass around; fields are those of `layout`.
Record: TypeAlias = Any  # one element of a structured array: a pointer in compiled code
Records: TypeAlias = Any  # a structured array
Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_njit: Any = numba.njit  # its stubs lack the options below


def compiled(function: Function) -> Function:
    """The function, compiled when a compiled function first calls it, with the types it is called with.

    Plain Python cannot call it: compiling that would take half as long again. `py_func` is the original.
    """
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast("Function", _njit(function, **options))


def entry(signature: object, function: Function) -> Function:
    """The function, compiled now for one signature.

    Kept on disk in NUMBA_CACHE_DIR, else beside the source, else in the user's cache folder, where one can be written.
    """
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return cast("Function", _njit(signature, cache=True, **options)(function))
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return cast("Function", _njit(signature, **options)(function))


def _pointer(_context: Any, address: Any) -> Any:
    """Typing and code of `pointer`: the address as a pointer to anything."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], numba.core.cgutils.voidptr_t)

    return numba.types.voidptr(address), code


pointer: Any = numba.extending.intrinsic(_pointer)
