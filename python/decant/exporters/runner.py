"""Runs one component of an export the way the model that it came from is called."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import decant
from decant._arrays import TensorInfo, to_numpy
from decant.errors import InvalidArgumentError
from decant.exporters.metadata import ExportMetadata
from decant.exporters.outputs import ModelOutput, as_model_output, plain_name

_NOTHING = object()


def is_torch_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _member(value: Any, key: str) -> Any:
    """A field of a value: a dict's entry, a list's item, an object's attribute."""
    if isinstance(value, Mapping):
        return value.get(key, value.get(int(key), _NOTHING) if key.isdigit() else _NOTHING)
    if isinstance(value, (list, tuple)):
        return value[int(key)] if key.isdigit() and int(key) < len(value) else _NOTHING
    return getattr(value, key, _NOTHING)


def _find(kwargs: Mapping[str, Any], path: str) -> Any:
    """The leaf of the arguments at a path such as `past_key_values.layers.0.keys`."""
    if path in kwargs:
        return kwargs[path]
    value: Any = kwargs
    for key in path.split("."):
        value = _member(value, key)
        if value is _NOTHING or value is None:
            return _NOTHING
    return value


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _leaves(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


class ModelRunner:
    """Runs one graph: `runner(**kwargs)` gives what the source model gives.

    Arguments are tensors of PyTorch, arrays of numpy, or the caches and dictionaries that hold them. With tensors of
    PyTorch the results are tensors too, in the model's own output class when Transformers is installed.
    """

    def __init__(self, model: decant.Model, metadata: ExportMetadata) -> None:
        self.model = model
        self.metadata = metadata

    def __repr__(self) -> str:
        return f"ModelRunner({self.metadata.architecture}, inputs={[i.name for i in self.model.inputs]})"

    @property
    def device(self) -> Any:
        """Where it runs: "cpu", as a torch.device when PyTorch is loaded."""
        torch = sys.modules.get("torch")
        return torch.device("cpu") if torch is not None else "cpu"

    @property
    def dtype(self) -> Any:
        """The precision it was exported at, as a torch.dtype when PyTorch is loaded."""
        name, torch = self.metadata.export_dtype, sys.modules.get("torch")
        return getattr(torch, name) if torch is not None and name else name

    def __call__(self, share_inputs: bool = True, share_outputs: bool = False, **kwargs: Any) -> Any:
        """`share_inputs` and `share_outputs` are accepted for the interface: inputs are read where they lie, and
        outputs are always the caller's own."""
        inputs: dict[str, Any] = {}
        missing: list[TensorInfo] = []
        for info in self.model.inputs:
            value = _find(kwargs, info.name.removeprefix("input."))
            if value is _NOTHING:
                missing.append(info)
            else:
                inputs[info.name] = value
        if missing:
            raise InvalidArgumentError(
                f"no value for the inputs {[str(info) for info in missing]}; given were {list(kwargs)}"
            )
        tensors = self.model.run(inputs, as_numpy=False)
        if not any(is_torch_tensor(value) for value in inputs.values()):
            return ModelOutput({plain_name(name): to_numpy(t) for name, t in tensors.items()})
        torch = importlib.import_module("torch")
        outputs = {plain_name(name): torch.from_dlpack(t) for name, t in tensors.items()}
        if importlib.util.find_spec("transformers") is None:
            return ModelOutput(outputs)
        return as_model_output(outputs, self.metadata)
