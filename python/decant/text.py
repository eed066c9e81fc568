"""Text: tokenizers, chat templates, generation piece by piece, conversations."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from decant import _native
from decant._arrays import Array
from decant._native import Tensor
from decant.errors import InvalidArgumentError

if TYPE_CHECKING:
    from typing_extensions import Unpack

Path = str | os.PathLike[str]
Message = Mapping[str, Any]
Prompt = str | Sequence[int] | Array | Sequence[Message]
Finish = Literal["stop", "length", "stop_string", "interrupted"]

_MAX_ID = 2**31 - 1


class GenerationOptions(TypedDict, total=False):
    """Options of a generation; what is left out has the value given here."""

    max_new_tokens: int
    """256"""
    temperature: float | None
    """None or 0: the most probable token"""
    top_k: int
    """0: off"""
    top_p: float
    """1: off"""
    min_p: float
    """0: off"""
    repetition_penalty: float
    """1: off"""
    seed: int
    """0; the same seed and logits give the same tokens"""
    stop: str | Sequence[str]
    """texts before the first of which the generation ends; none"""
    ignore_stop_tokens: bool
    """False"""
    timeout: float | None
    """seconds; None: no limit"""


_DEFAULTS: dict[str, Any] = {
    "max_new_tokens": 256,
    "ignore_stop_tokens": False,
    "stop": (),
    "temperature": None,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "seed": 0,
    "timeout": None,
}


@dataclass(frozen=True)
class Generation:
    """What a generation gave."""

    ids: list[int]
    """new ids, without the stop token"""
    text: str
    """of the new ids, without special tokens"""
    finish: Finish
    stop_id: int | None
    """the stop token that ended it"""
    prompt_tokens: int
    prefill_seconds: float
    decode_seconds: float


@dataclass(frozen=True)
class Step:
    """One token of a generation, with the text that it settled."""

    id: int | None
    """None in a last step that only settles text"""
    text: str
    """valid text, nothing of a stop string; often empty"""


def token_ids(ids: Iterable[Any]) -> list[int]:
    """Ids as the library takes them."""
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise InvalidArgumentError(f"token ids are integers in one row, not {ids.dtype}{list(ids.shape)}")
        ids = ids.tolist()
    out = []
    for each in ids:
        try:
            value = each.__index__()
        except (AttributeError, TypeError):
            raise InvalidArgumentError(f"token ids are integers, not {type(each).__name__}") from None
        if not 0 <= value <= _MAX_ID:
            raise InvalidArgumentError(f"{value} is no token id")
        out.append(value)
    return out


def _variables(variables: Mapping[str, Any]) -> str:
    try:
        return json.dumps(variables)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the variables of a chat template are what JSON can hold: {error}") from None


def _prompt_ids(model: _native.TextModel, prompt: Prompt) -> list[int]:
    if isinstance(prompt, str):
        return model.encode(prompt, True)
    if isinstance(prompt, Sequence) and len(prompt) and isinstance(prompt[0], Mapping):
        # The template writes the special tokens; encoding must not add them again.
        messages = [dict(each) if isinstance(each, Mapping) else each for each in prompt]
        return model.encode(model.render_chat(_variables({"messages": messages, "add_generation_prompt": True})), False)
    if isinstance(prompt, (bytes, Mapping)) or not isinstance(prompt, Iterable):
        raise InvalidArgumentError(f"a prompt is text, token ids or messages, not {type(prompt).__name__}")
    return token_ids(prompt)


def start(
    model: _native.TextModel,
    prompt: Prompt,
    inputs: dict[str, Tensor],
    held: bool,
    options: Mapping[str, Any],
) -> TextStream:
    """Begins a generation; `held`: what the sequence already holds of the prompt is not computed again."""
    unknown = [name for name in options if name not in _DEFAULTS]
    if unknown:
        raise TypeError(f"no options {unknown}; there are {sorted(_DEFAULTS)}")
    chosen = {**_DEFAULTS, **options}
    stop = chosen["stop"]
    chosen["stop"] = [stop] if isinstance(stop, str) else list(stop)
    if not 0 <= chosen["seed"] < 2**64:
        raise InvalidArgumentError("a seed is an integer from 0 to 2^64 - 1")
    return TextStream(model.start(_prompt_ids(model, prompt), inputs, held, **chosen))


class TextStream:
    """A generation under way: an iterator of its text, which computes a token when it is asked for more.

    >>> with model.stream("The lighthouse keeper") as stream:
    ...     for piece in stream:
    ...         print(piece, end="", flush=True)
    >>> stream.result.finish

    Another generation of the same model ends it: it raises InvalidArgumentError then.
    """

    def __init__(self, native: _native.TokenStream) -> None:
        self._native = native
        self._closed = False

    def step(self) -> Step | None:
        """The next token; None at the end."""
        if self._closed:
            return None
        got = self._native.next()
        if got is None:
            self._end()
            return None
        return Step(*got)

    def steps(self) -> Iterator[Step]:
        """Token by token, rather than piece by piece."""
        while (step := self.step()) is not None:
            yield step

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while (step := self.step()) is not None:
            if step.text:
                return step.text
        raise StopIteration

    def run(self) -> Generation:
        """Runs to the end."""
        while self.step() is not None:
            pass
        return self.result

    def stop(self) -> None:
        """Ends the generation soon, from any thread: the next step is the last, and `finish` is "interrupted"."""
        self._native.stop()

    def close(self) -> None:
        """Ends the generation here."""
        if not self._closed:
            self._native.stop()
            self._end()

    def _end(self) -> None:
        self._closed = True

    @property
    def result(self) -> Generation:
        """What came so far; `finish` counts at the end."""
        return Generation(*self._native.generation())

    def __enter__(self) -> TextStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _ChatStream(TextStream):
    """Adds the answer to its conversation when it ends."""

    def __init__(self, native: _native.TokenStream, messages: list[dict[str, Any]]) -> None:
        super().__init__(native)
        self._messages = messages
        self._length = len(messages)

    def step(self) -> Step | None:
        try:
            return super().step()
        except BaseException:
            # The conversation is as before the message.
            self._closed = True
            del self._messages[self._length - 1 :]
            raise

    def _end(self) -> None:
        super()._end()
        self._messages.append({"role": "assistant", "content": self.result.text})


class Chat:
    """A conversation. `messages` may be read and changed between turns; for one thread at a time."""

    def __init__(self, native: _native.TextModel, system: str | None = None) -> None:
        self._native = native
        self.messages: list[dict[str, Any]] = []
        if system is not None:
            self.messages.append({"role": "system", "content": system})

    def stream(self, message: str, **options: Unpack[GenerationOptions]) -> TextStream:
        """Sends a message; the answer becomes part of the conversation when the stream ends or is closed."""
        self.messages.append({"role": "user", "content": message})
        try:
            return _ChatStream(start(self._native, self.messages, {}, True, options)._native, self.messages)
        except BaseException:
            self.messages.pop()
            raise

    def send(self, message: str, **options: Unpack[GenerationOptions]) -> Generation:
        """Sends a message and gives the answer. After an error the conversation is as before."""
        return self.stream(message, **options).run()


@dataclass(frozen=True)
class Encoding:
    """Ids of a text, and for each the characters [begin, end) that it stands for."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class TokenDecoder:
    """Ids to text as they come: an unfinished character is held until it is whole."""

    def __init__(self, native: _native.TokenDecoder) -> None:
        self._native = native

    def push(self, token: int) -> str:
        """The text that the token completes; often empty."""
        return self._native.push(token_ids([token])[0])

    def flush(self) -> str:
        """What was held back; the decoder starts anew afterwards."""
        return self._native.flush()


class Tokenizer:
    """Text to token ids and back, as Hugging Face's `tokenizers` does it."""

    def __init__(self, native: _native.Tokenizer) -> None:
        self._native = native

    @classmethod
    def from_file(cls, path: Path) -> Tokenizer:
        """Reads a tokenizer.json, or the tokenizer of a folder, a .gguf file or a hub repository (hf://...)."""
        return cls(_native.Tokenizer.load(os.fspath(path)))

    @classmethod
    def from_str(cls, text: str) -> Tokenizer:
        """Reads the text of a tokenizer.json."""
        return cls(_native.Tokenizer.from_json(text))

    def encode(self, text: str, *, add_special_tokens: bool = True, special_tokens_as_text: bool = False) -> list[int]:
        """The ids of a text. `special_tokens_as_text`: special tokens in the text are ordinary text."""
        return self._native.encode(text, add_special_tokens, special_tokens_as_text, False)[0]

    def encode_with_offsets(
        self, text: str, *, add_special_tokens: bool = True, special_tokens_as_text: bool = False
    ) -> Encoding:
        return Encoding(*self._native.encode(text, add_special_tokens, special_tokens_as_text, True))

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """The text of ids; ids without a token are passed over."""
        return self._native.decode(token_ids(ids), skip_special_tokens)

    def decoder(self, *, skip_special_tokens: bool = True) -> TokenDecoder:
        """Decodes ids one at a time."""
        return TokenDecoder(_native.TokenDecoder(self._native, skip_special_tokens))

    def token_to_id(self, token: str) -> int | None:
        return self._native.token_to_id(token)

    def id_to_token(self, id: int) -> str | None:
        """The token as the vocabulary spells it."""
        return self._native.id_to_token(token_ids([id])[0])

    def is_special(self, id: int) -> bool:
        return self._native.is_special(token_ids([id])[0])

    @property
    def vocab_size(self) -> int:
        """Number of tokens, added ones included."""
        return self._native.vocab_size


class ChatTemplate:
    """A chat template in Jinja's language, rendered as Transformers renders it, with bounded time and memory."""

    def __init__(self, source: str, *, name: str = "chat template") -> None:
        self._native = _native.ChatTemplate.parse(source, name)

    @classmethod
    def from_file(cls, path: Path) -> ChatTemplate:
        """Reads a .jinja file, or the template of a folder, a .gguf file or a hub repository (hf://...), whose special
        tokens become variables."""
        self = cls.__new__(cls)
        self._native = _native.ChatTemplate.load(os.fspath(path))
        return self

    @property
    def source(self) -> str:
        return self._native.source

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        **variables: Any,
    ) -> str:
        """The text of a conversation; `variables` are further variables of the template."""
        return self._native.render(
            _variables(
                {
                    **variables,
                    "messages": [dict(each) for each in messages],
                    "tools": tools,
                    "documents": documents,
                    "add_generation_prompt": add_generation_prompt,
                    "continue_final_message": continue_final_message,
                }
            )
        )
