"""A folder that an exporter wrote, loaded and called like the model that it came from."""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import os
import pathlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import decant
from decant.errors import InvalidArgumentError, InvalidModelError, NotFoundError, UnsupportedError
from decant.exporters.metadata import ExportMetadata
from decant.exporters.runner import ModelRunner, is_torch_tensor

Path = str | os.PathLike[str]

logger = logging.getLogger(__name__)

MANIFEST = "export.json"
SCHEMA_VERSION = 1
_CONFIGS = ("config.json", "generation_config.json")


@dataclass
class ExportedComponent:
    """One graph of an export: its file, and what the exporter recorded about it."""

    program: pathlib.Path
    metadata: ExportMetadata


def _read_manifest(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFoundError(f"{path}: no such file; an exporter writes it") from None
    except (OSError, ValueError) as error:
        raise InvalidModelError(f"{path}: {error}") from None
    entries = manifest.get("components") if isinstance(manifest, dict) else None
    if not isinstance(manifest, dict) or not isinstance(entries, dict) or not entries:
        raise InvalidModelError(f"{path}: not an export manifest: it has no object 'components'")
    for name, entry in entries.items():
        file = entry.get("file") if isinstance(entry, dict) else None
        if not isinstance(file, str) or not isinstance(entry.get("metadata", {}), dict):
            raise InvalidModelError(f"{path}: component '{name}' names no file, or has no metadata")
        if not file or pathlib.PurePath(file).name != file or "\\" in file:
            raise InvalidModelError(f"{path}: component '{name}': file '{file}' is outside the export's folder")
    return manifest


def _read_config(path: pathlib.Path, transformers_class: str, **options: Any) -> Any:
    """A configuration: the class of Transformers when it is installed, else a dictionary; None without a file."""
    if not path.exists():
        return None
    if importlib.util.find_spec("transformers") is not None and importlib.util.find_spec("torch") is not None:
        return getattr(importlib.import_module("transformers"), transformers_class).from_pretrained(
            path.parent, **options
        )
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidModelError(f"{path}: {error}") from None


def _from_hub(repository: str, patterns: list[str], options: Mapping[str, Any]) -> pathlib.Path:
    if importlib.util.find_spec("huggingface_hub") is None:
        raise NotFoundError(f"{repository}: no such folder; install huggingface_hub to load exports from the hub")
    hub = importlib.import_module("huggingface_hub")
    return pathlib.Path(hub.snapshot_download(repository, allow_patterns=patterns, **options))


def _is_row_of_ids(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not any(hasattr(each, "__len__") for each in value)


class ExportedModel:
    """An export with its components, called the way the model that it came from is called.

    >>> exported = ExportedModel.from_pretrained("exported")
    >>> exported(input_ids=ids, attention_mask=mask).logits
    >>> exported.runners["decode"](**inputs)
    >>> exported.generate(ids, max_new_tokens=20)
    """

    def __init__(
        self,
        components: Mapping[str, ExportedComponent],
        export_format: str,
        config: Any = None,
        generation_config: Any = None,
    ) -> None:
        self.components = dict(components)
        self.export_format = export_format
        self.config = config
        self.generation_config = generation_config
        self._threads = 0
        self._runners: dict[str, ModelRunner] | None = None
        self._text: decant.Model | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(format={self.export_format!r}, components={list(self.components)})"

    def _single_component(self) -> str:
        if len(self.components) != 1:
            raise ValueError(
                f"this export has {len(self.components)} components ({list(self.components)}), so there is no one graph"
                " to call: use generate(), or runners[name](...)"
            )
        return next(iter(self.components))

    @property
    def program(self) -> pathlib.Path:
        """The graph's file, of an export with one component."""
        return self.components[self._single_component()].program

    @property
    def runners(self) -> dict[str, ModelRunner]:
        """The runner of each component."""
        if self._runners is None:
            self.to()
        assert self._runners is not None
        return self._runners

    @property
    def device(self) -> Any:
        return next(iter(self.runners.values())).device

    @property
    def dtype(self) -> Any:
        """The precision that the export was traced at."""
        return next(iter(self.runners.values())).dtype

    def to(self, device: Any = None, *, threads: int = 0) -> ExportedModel:
        """Loads the components on `device`, which is the CPU; threads 0: the machine's physical cores."""
        if device is not None and str(device).split(":")[0] != "cpu":
            raise UnsupportedError(f"device {device}: decant runs on the CPU")
        self._threads = threads
        self._runners = {
            name: ModelRunner(decant.load(component.program, threads=threads), component.metadata)
            for name, component in self.components.items()
        }
        return self

    def __call__(self, share_inputs: bool = True, share_outputs: bool = False, **kwargs: Any) -> Any:
        """Runs an export of one graph. Arguments that it was not traced with are dropped, with a warning."""
        runner = self.runners[self._single_component()]
        traced = runner.metadata.kwargs
        unused = [key for key in kwargs if key not in traced]
        if unused:
            logger.warning("dropping inputs that the export was not traced with: %s", unused)
        inputs = {key: value for key, value in kwargs.items() if key in traced}
        return runner(share_inputs=share_inputs, share_outputs=share_outputs, **inputs)

    def _generation_default(self, name: str, fallback: Any) -> Any:
        for config in (self.generation_config, self.config):
            value = config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)
            if value is not None:
                return value
        return fallback

    def generate(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        *,
        max_new_tokens: int | None = None,
        do_sample: bool = False,
        temperature: float = 1.0,
        top_k: int = 50,
        top_p: float = 1.0,
        min_p: float | None = None,
        repetition_penalty: float = 1.0,
        seed: int = 0,
        pad_token_id: int | None = None,
        ignore_stop_tokens: bool = False,
    ) -> Any:
        """Generates from a batch of prompts, [batch, length], and gives prompts with what follows, padded on the right.

        The prompts run one after the other, on caches that stay inside decant. Positions that `attention_mask` leaves
        out are padding. Results are a tensor of PyTorch when `input_ids` is one, else a numpy array of int64.
        """
        rows = input_ids.tolist() if hasattr(input_ids, "tolist") else input_ids
        if not isinstance(rows, (list, tuple)) or not rows or not all(map(_is_row_of_ids, rows)):
            raise InvalidArgumentError("input_ids are token ids, [batch, length]")
        masks: Any = [[1] * len(row) for row in rows]
        if attention_mask is not None:
            masks = attention_mask.tolist() if hasattr(attention_mask, "tolist") else attention_mask
            if [len(m) for m in masks] != [len(r) for r in rows]:
                raise InvalidArgumentError("attention_mask has another shape than input_ids")
        if max_new_tokens is None:
            max_new_tokens = int(self._generation_default("max_new_tokens", 20))
        pad = pad_token_id
        if pad is None:
            pad = self._generation_default("pad_token_id", 0)
        options: dict[str, Any] = {"repetition_penalty": repetition_penalty}
        if do_sample:
            options |= {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p or 0.0}
        model = self._text_model()
        results = []
        for i, (row, mask) in enumerate(zip(rows, masks, strict=True)):
            prompt = [token for token, kept in zip(row, mask, strict=True) if kept]
            generation = model.generate(
                prompt,
                max_new_tokens=max_new_tokens,
                ignore_stop_tokens=ignore_stop_tokens,
                seed=seed + i,
                **options,
            )
            # As Transformers has it, the token that ended a row stands at its end.
            end = [] if generation.stop_id is None else [generation.stop_id]
            results.append([*row, *generation.ids, *end])
        width = max(map(len, results))
        padded = np.full((len(results), width), pad, np.int64)
        for target, result in zip(padded, results, strict=True):
            target[: len(result)] = result
        if is_torch_tensor(input_ids):
            return importlib.import_module("torch").from_numpy(padded).to(input_ids.dtype)
        return padded

    def _text_model(self) -> decant.Model:
        if self._text is None:
            folder = next(iter(self.components.values())).program.parent
            self._text = decant.load(folder, threads=self._threads)
        return self._text

    def save_pretrained(self, save_directory: Path, push_to_hub: bool = False) -> None:
        """Copies the export: programs with their weights, configurations, and a manifest, which comes last."""
        if push_to_hub:
            raise UnsupportedError("push_to_hub: upload the folder with huggingface_hub")
        target = pathlib.Path(save_directory)
        target.mkdir(parents=True, exist_ok=True)
        entries = {}
        with tempfile.TemporaryDirectory(dir=target) as staging:
            for name, component in self.components.items():
                file = component.program.name
                for each in (component.program, component.program.with_name(file + ".data")):
                    if each.exists():
                        shutil.copyfile(each, pathlib.Path(staging) / each.name)
                entries[name] = {"file": file, "metadata": asdict(component.metadata)}
            folder = next(iter(self.components.values())).program.parent
            for name in _CONFIGS:
                if (folder / name).exists():
                    shutil.copyfile(folder / name, pathlib.Path(staging) / name)
            for each in pathlib.Path(staging).iterdir():
                os.replace(each, target / each.name)
        manifest = {"schema_version": SCHEMA_VERSION, "export_format": self.export_format, "components": entries}
        (target / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: Path,
        *,
        device: Any = None,
        cache_dir: Path | None = None,
        force_download: bool = False,
        local_files_only: bool = False,
        token: str | bool | None = None,
        revision: str = "main",
        subfolder: str = "",
        trust_remote_code: bool = False,
        **runner_kwargs: Any,
    ) -> ExportedModel:
        """Loads what `save_pretrained` of these exporters, or of Transformers', wrote: a folder, or a repository on the
        hub, from which only the files that the manifest names are downloaded.

        `runner_kwargs`: `threads`, as in `to`.
        """
        unknown = [name for name in runner_kwargs if name != "threads"]
        if unknown:
            raise TypeError(f"unknown arguments {unknown}: decant's runner takes ['threads']")
        folder = pathlib.Path(pretrained_model_name_or_path) / subfolder
        if not folder.is_dir():
            options = {
                "cache_dir": cache_dir,
                "force_download": force_download,
                "local_files_only": local_files_only,
                "token": token,
                "revision": revision,
            }
            prefix = f"{subfolder.strip('/')}/" if subfolder else ""
            repository = os.fspath(pretrained_model_name_or_path)
            folder = _from_hub(repository, [prefix + MANIFEST], options) / subfolder
            files = [entry["file"] for entry in _read_manifest(folder)["components"].values()]
            files += [file + ".data" for file in files] + list(_CONFIGS)
            _from_hub(repository, [prefix + file for file in files], options)
        manifest = _read_manifest(folder)
        if manifest.get("schema_version", 1) > SCHEMA_VERSION:
            logger.warning(
                "%s: schema %s is newer than %s: fields may be misunderstood",
                folder / MANIFEST,
                manifest["schema_version"],
                SCHEMA_VERSION,
            )
        export_format = manifest.get("export_format", "onnx")
        if export_format != "onnx":
            raise UnsupportedError(f"{folder / MANIFEST}: export_format {export_format}; decant runs onnx exports")
        components = {
            name: ExportedComponent(folder / entry["file"], ExportMetadata.from_dict(entry.get("metadata", {})))
            for name, entry in manifest["components"].items()
        }
        model = cls(
            components,
            export_format,
            _read_config(folder / "config.json", "AutoConfig", trust_remote_code=trust_remote_code),
            _read_config(folder / "generation_config.json", "GenerationConfig"),
        )
        return model.to(device, **runner_kwargs)
