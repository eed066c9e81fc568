"""Models: named tensors in and out, plans for many runs, and text from what generates text."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from decant import _native
from decant._arrays import Array, TensorInfo, TensorLike, as_tensor, as_tensors, infos, to_numpy
from decant._native import Tensor
from decant.errors import InvalidArgumentError
from decant.text import Chat, Generation, GenerationOptions, Prompt, TextStream, Tokenizer, start

if TYPE_CHECKING:
    from typing_extensions import Unpack

Path = str | os.PathLike[str]
NativeT = TypeVar("NativeT", _native.Model, _native.CompiledModel)


class _Runnable(Generic[NativeT]):
    """What runs named tensors: a model, or its plans."""

    def __init__(self, native: NativeT) -> None:
        self._native: NativeT = native
        self._inputs = infos(native.inputs)
        self._outputs = infos(native.outputs)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        return self._inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        return self._outputs

    @overload
    def run(
        self,
        inputs: Mapping[str, TensorLike],
        outputs: Iterable[str] | None = None,
        *,
        as_numpy: Literal[True] = True,
        timeout: float | None = None,
    ) -> dict[str, Array]: ...

    @overload
    def run(
        self,
        inputs: Mapping[str, TensorLike],
        outputs: Iterable[str] | None = None,
        *,
        as_numpy: Literal[False],
        timeout: float | None = None,
    ) -> dict[str, Tensor]: ...

    def run(
        self,
        inputs: Mapping[str, TensorLike],
        outputs: Iterable[str] | None = None,
        *,
        as_numpy: bool = True,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Runs once; gives the named outputs, or all.

        Inputs are numpy arrays, arrays with `__dlpack__` in host memory (PyTorch's), or numbers in lists; contiguous
        arrays are read where they lie. With `as_numpy=False` outputs are `decant.Tensor`s, which any library reads
        through DLPack. Raises InvalidArgumentError for names, dtypes, ranks and dims that do not fit, and
        DeadlineError after `timeout` seconds.
        """
        names = [info.name for info in self._outputs]
        wanted = names if outputs is None else list(outputs)
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise InvalidArgumentError(f"no outputs {unknown}; there are {names}")
        tensors = self._native.run(as_tensors(inputs, self._inputs), timeout)
        return {name: to_numpy(tensors[name]) if as_numpy else tensors[name] for name in wanted}


class Model(_Runnable[_native.Model]):
    """A model with its graph, and with its tokenizer and chat template where it generates text.

    All methods may be called from several threads; what runs holds no interpreter lock. Runs of one model take turns,
    since they share its threads.
    """

    def __init__(
        self,
        path: Path,
        *,
        component: str | None = None,
        dtype: str | None = None,
        threads: int = 0,
        isa: str | None = None,
        max_cache_len: int = 0,
        on_download: Callable[[int, int], None] | None = None,
    ) -> None:
        self._path = os.fspath(path)
        self._dtype = dtype or ""
        self._threads = threads
        self._isa = isa or ""
        self._max_cache_len = max_cache_len
        super().__init__(
            _native.Model.load(self._path, component or "", self._dtype, self._threads, self._isa, on_download)
        )
        self._text: _native.TextModel | None = None
        self._tokenizer: Tokenizer | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"decant.Model({self._path!r}: {self.layout})"

    @property
    def path(self) -> str:
        return self._path

    @property
    def layout(self) -> str:
        """What the path turned out to be, for people."""
        return self._native.layout

    def compile(
        self,
        *,
        static_inputs: Sequence[str] = (),
        example_shapes: Mapping[str, Sequence[int]] | None = None,
        fixed_caches: bool = False,
        max_plans: int = 16,
    ) -> CompiledModel:
        """Plans for many runs.

        `static_inputs`: inputs whose value is known when a plan is made; each value gets a plan of its own.
        `example_shapes`: dims of typical inputs, for which memory is taken at once. `fixed_caches`: growing caches
        become buffers that the caller owns, and a new input `cache_length` says how much of them is filled.
        """
        shapes = {name: list(dims) for name, dims in (example_shapes or {}).items()}
        return CompiledModel(self._native.compile(list(static_inputs), shapes, fixed_caches, max_plans))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer beside the model. NotFoundError when there is none."""
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = Tokenizer.from_file(self._path)
            return self._tokenizer

    def _generator(self) -> _native.TextModel:
        with self._lock:
            if self._text is None:
                self._text = _native.TextModel.load(
                    self._path, self._dtype, self._threads, self._isa, self._max_cache_len
                )
            return self._text

    def generate(
        self,
        prompt: Prompt,
        *,
        inputs: Mapping[str, TensorLike] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Generation:
        """Continues a prompt: text, token ids, or messages for the chat template. See GenerationOptions.

        Each call starts a new sequence. `inputs`: tensors for an encoder, such as `input_features`; the prompt is then
        what the decoder starts with, or empty. After `timeout` seconds the generation ends with what there is, and
        `finish` is "interrupted".
        """
        return self.stream(prompt, inputs=inputs, **options).run()

    def stream(
        self,
        prompt: Prompt,
        *,
        inputs: Mapping[str, TensorLike] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> TextStream:
        """The same, piece by piece: computing rests while the caller does, and ends when the stream is closed."""
        tensors = {name: as_tensor(name, value) for name, value in (inputs or {}).items()}
        return start(self._generator(), prompt, tensors, False, options)

    def chat(self, system: str | None = None) -> Chat:
        """A conversation, of whose earlier turns nothing is computed again."""
        return Chat(self._generator(), system)


class CompiledModel(_Runnable[_native.CompiledModel]):
    """Plans of one model, kept from run to run. A run with sizes seen before does no shape work."""

    @property
    def compile_count(self) -> int:
        """How many plans have been made so far."""
        return self._native.compile_count

    def bind(self) -> Binding:
        """A place to set inputs and outputs once and run many times."""
        return Binding(self._native.bind(), self._inputs)


class Binding:
    """Inputs and outputs that stay from run to run; for one thread at a time.

    Arrays are shared: what is written to an input later is seen by the next run, and an output is written into the
    array that was set for it. A cache whose input and output are the same array is updated in place.
    """

    def __init__(self, native: _native.Binding, inputs: tuple[TensorInfo, ...]) -> None:
        self._native = native
        self._known = {info.name: info for info in inputs}
        self._own: dict[str, Any] = {}

    def set_input(self, name: str, value: TensorLike) -> None:
        """The array is read where it lies when it is contiguous; otherwise its values now are taken."""
        self._native.set_input(name, as_tensor(name, value, self._known.get(name)))

    def set_output(self, name: str, value: TensorLike) -> None:
        """A writable, contiguous array with exactly the output's dtype and dims in each run."""
        self._native.set_output(name, as_tensor(name, value, None, writable=True))
        self._own[name] = value

    def clear_output(self, name: str) -> None:
        self._native.clear_output(name)
        self._own.pop(name, None)

    def run(self, *, timeout: float | None = None) -> dict[str, Any]:
        """Runs with what is set now; gives all outputs: the arrays that were set, or new numpy arrays."""
        tensors = self._native.run(timeout)
        return {**{name: to_numpy(t) for name, t in tensors.items()}, **self._own}

    def in_place(self, name: str) -> bool:
        """Whether the last run updated this state output in place."""
        return self._native.in_place(name)


def load(
    path: Path,
    *,
    component: str | None = None,
    dtype: str | None = None,
    threads: int = 0,
    isa: str | None = None,
    max_cache_len: int = 0,
    on_download: Callable[[int, int], None] | None = None,
) -> Model:
    """Opens a model: a folder, an .onnx or .gguf file, or "hf://owner/name[@revision][/file]".

    component: which graph of several; None: the only one, or the decoder. dtype: which variant of a repository
    ("fp16", "q4"). threads: 0: the machine's physical cores. isa: an instruction set, as the environment variable
    DECANT_ISA. max_cache_len: positions of the cache for text; 0: the model's own limit, at most 4096. on_download:
    called with the bytes done and in all, from other threads.

    Weights are mapped from the files, which must not change meanwhile.
    """
    return Model(
        path,
        component=component,
        dtype=dtype,
        threads=threads,
        isa=isa,
        max_cache_len=max_cache_len,
        on_download=on_download,
    )
