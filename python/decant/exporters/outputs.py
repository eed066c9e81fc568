"""What a model returns: the model's own output class where PyTorch and Transformers are there, else a dictionary."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from decant.errors import InvalidModelError
from decant.exporters.metadata import ExportMetadata


class ModelOutput(dict[str, Any]):
    """Outputs by name, also as attributes. Nested outputs have joined names: `past_key_values.layers.0.keys`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no output {name!r}; there are {list(self)}") from None

    def to_tuple(self) -> tuple[Any, ...]:
        return tuple(self.values())


def plain_name(name: str) -> str:
    """The name of an output without the prefix that tells it from an input of the same name."""
    return name.removeprefix("output.")


def _types(node: Any) -> Iterator[str]:
    """The type names of a dumped spec, outermost first."""
    if isinstance(node, dict):
        if isinstance(node.get("type"), str):
            yield node["type"]
        for child in node.get("children_spec") or ():
            yield from _types(child)


def _register(dumped: str) -> None:
    """Makes the classes of Transformers that a spec names known to PyTorch's trees. Nothing else is imported."""
    metadata = importlib.import_module("transformers.exporters.metadata")
    for name in _types(json.loads(dumped)[1]):
        if not name.startswith(("builtins.", "transformers.")):
            raise InvalidModelError(f"an output spec names {name}, which is no class of Transformers")
    metadata.register_treespec_types(dumped)


def as_model_output(outputs: Mapping[str, Any], metadata: ExportMetadata) -> Any:
    """The value that the traced forward returned, from tensors of PyTorch by output name, in the graph's order."""
    if not metadata.out_spec:
        return ModelOutput(outputs)
    _register(metadata.out_spec)
    pytree = importlib.import_module("torch.utils._pytree")
    spec = pytree.treespec_loads(metadata.out_spec)
    constants = {int(index): value for index, value in metadata.out_constants}
    count = spec.num_leaves - len(constants)
    tensors = list(outputs.values())
    if count > len(tensors):
        raise InvalidModelError(f"the graph has {len(tensors)} outputs, the recorded output spec {count}")
    given = iter(tensors[len(tensors) - count :])
    leaves = [constants[i] if i in constants else next(given) for i in range(spec.num_leaves)]
    return pytree.tree_unflatten(leaves, spec)
