"""What an exporter recorded about a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass
class ExportMetadata:
    """One component's record in export.json. Fields that it lacks keep their defaults; unknown ones are ignored."""

    architecture: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    export_config: dict[str, Any] = field(default_factory=dict)
    export_dtype: str | None = None
    export_device: str | None = None
    kwargs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """the keyword arguments of the traced forward, in order"""
    in_spec: str | None = None
    out_spec: str | None = None
    """pytree specs, as PyTorch dumps them"""
    in_constants: dict[str, Any] = field(default_factory=dict)
    """arguments whose value is part of the graph"""
    out_constants: list[Any] = field(default_factory=list)
    """[leaf index, value] of outputs that are no tensors"""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ExportMetadata:
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})
