"""Arrays of other libraries to decant's tensors and back, without copies where the memory allows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import ml_dtypes
import numpy as np
import numpy.typing as npt

from decant._native import Tensor
from decant.errors import DecantError, InvalidArgumentError, UnsupportedError

Array = npt.NDArray[Any]


class SupportsDLPack(Protocol):
    """An array of any library that shares its memory through DLPack: PyTorch, JAX, CuPy, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> Any: ...


TensorLike = Array | SupportsDLPack | Tensor | bool | int | float | list[Any] | tuple[Any, ...]

# Types that numpy itself lacks, under decant's name for them.
_EXTENDED: dict[str, np.dtype[Any]] = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in (
        "bfloat16",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )
    if hasattr(ml_dtypes, name)
}


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model. A dim is a number, or an expression that a run gives its value."""

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None
    """None where the rank is not known."""

    def __str__(self) -> str:
        dims = "..." if self.shape is None else ", ".join(map(str, self.shape))
        return f"{self.name}: {self.dtype}[{dims}]"


def infos(described: Iterable[tuple[str, str, tuple[int | str, ...] | None]]) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(*each) for each in described)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of decant's dtype `name`."""
    if name in _EXTENDED:
        return _EXTENDED[name]
    try:
        return np.dtype(name)
    except TypeError:
        raise UnsupportedError(f"numpy has no dtype for {name}") from None


def to_numpy(tensor: Tensor) -> Array:
    """The tensor's memory as a numpy array."""
    raw: Array = tensor.raw_array()
    return raw.view(_EXTENDED[tensor.dtype]) if tensor.dtype in _EXTENDED else raw


def array(tensor: Tensor, dtype: npt.DTypeLike | None, copy: bool | None) -> Array:
    """What numpy asks `__array__` for."""
    own = to_numpy(tensor)
    wanted = own.dtype if dtype is None else np.dtype(dtype)
    if wanted == own.dtype and not copy:
        return own
    if copy is False:
        raise ValueError(f"a tensor of {tensor.dtype} is no array of {wanted} without a copy")
    return own.astype(wanted)


def _from_values(value: object, info: TensorInfo | None) -> Array:
    """Python numbers, in lists or alone, as an array of the dtype that the model wants."""
    try:
        given = np.asarray(value)
    except ValueError:
        raise InvalidArgumentError("lists of unequal lengths are no tensor") from None
    if given.dtype.kind not in "biufc":
        raise InvalidArgumentError(f"expected numbers, not {type(value).__name__} of {given.dtype}")
    if info is None:
        return given
    wanted = numpy_dtype(info.dtype)
    kind = given.dtype.kind
    loses = (kind in "fc" and wanted.kind in "biu") or (kind != "b" and wanted.kind == "b")
    converted = given.astype(wanted)
    if given.size and (loses or (wanted.kind in "iu" and not np.array_equal(converted, given))):
        raise InvalidArgumentError(f"values of {given.dtype} do not fit {info.dtype}")
    return converted


def _from_numpy(value: Array, writable: bool) -> Tensor:
    dtype = value.dtype
    if dtype.name in _EXTENDED and _EXTENDED[dtype.name] == dtype:
        return Tensor.from_array(value.view(f"u{dtype.itemsize}"), dtype.name, writable)
    if dtype.kind not in "biufc":
        raise InvalidArgumentError(f"an array of dtype {dtype} is no tensor of numbers")
    if not dtype.isnative:
        if writable:
            raise InvalidArgumentError(f"an array of dtype {dtype} cannot be written to: it is not of native order")
        value = value.astype(dtype.newbyteorder("="))
    return Tensor.from_array(value, None, writable)


def _convert(value: object, info: TensorInfo | None, writable: bool) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        return _from_numpy(value, writable)
    if not writable and isinstance(value, (bool, int, float, complex, list, tuple, np.generic)):
        return _from_numpy(_from_values(value, info), False)
    if getattr(value, "requires_grad", False):
        value = value.detach()  # type: ignore[attr-defined]
    if not (hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__")):
        raise InvalidArgumentError(f"expected an array (numpy's, or one with __dlpack__), not {type(value).__name__}")
    return Tensor.from_array(value, None, writable)


def as_tensor(name: str, value: object, info: TensorInfo | None = None, writable: bool = False) -> Tensor:
    """The tensor for input or output `name`; `info` says what the model expects there."""
    try:
        return _convert(value, info, writable)
    except DecantError as error:
        expected = f" (expected {info})" if info else ""
        raise type(error)(f"'{name}': {error}{expected}") from None


def as_tensors(inputs: object, expected: Iterable[TensorInfo]) -> dict[str, Tensor]:
    """The tensors of a run's inputs. Names that the model lacks go through: the library lists what there is."""
    if not isinstance(inputs, Mapping):
        raise InvalidArgumentError(f"inputs are a mapping from names to arrays, not {type(inputs).__name__}")
    known = {info.name: info for info in expected}
    for name in inputs:
        if not isinstance(name, str):
            raise InvalidArgumentError(f"the name of an input is text, not {type(name).__name__}")
    return {name: as_tensor(name, value, known.get(name)) for name, value in inputs.items()}
