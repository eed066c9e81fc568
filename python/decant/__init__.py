"""decant: Hugging Face models from where they were written to where they run.

>>> import decant
>>> model = decant.load("smollm2")
>>> model.run({"input_ids": [[1, 2, 3]], ...})["logits"]
>>> model.generate("The lighthouse keeper", max_new_tokens=40).text
"""

from decant._arrays import SupportsDLPack, TensorInfo, TensorLike
from decant._native import Tensor, __version__
from decant.errors import (
    DeadlineError,
    DecantError,
    InternalError,
    InvalidArgumentError,
    InvalidModelError,
    NotFoundError,
    OutOfRangeError,
    ResourceError,
    UnsupportedError,
)
from decant.model import Binding, CompiledModel, Model, load
from decant.text import (
    Chat,
    ChatTemplate,
    Encoding,
    Generation,
    GenerationOptions,
    Step,
    TextStream,
    TokenDecoder,
    Tokenizer,
)

__all__ = [
    "Binding",
    "Chat",
    "ChatTemplate",
    "CompiledModel",
    "DeadlineError",
    "DecantError",
    "Encoding",
    "Generation",
    "GenerationOptions",
    "InternalError",
    "InvalidArgumentError",
    "InvalidModelError",
    "Model",
    "NotFoundError",
    "OutOfRangeError",
    "ResourceError",
    "Step",
    "SupportsDLPack",
    "Tensor",
    "TensorInfo",
    "TensorLike",
    "TextStream",
    "TokenDecoder",
    "Tokenizer",
    "UnsupportedError",
    "__version__",
    "load",
]
