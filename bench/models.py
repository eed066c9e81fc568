"""The model files that the peers of bench/bench.py run, all made from the one GGUF file.

usage: models.py gguf SOURCE TARGET F32|F16|BF16|Q4_0   llama.cpp's own converter
       models.py checkpoint SOURCE FOLDER                 fp32 safetensors, for onnxruntime-genai's builder
"""

import ctypes
import pathlib
import sys


def convert_gguf(source, target, kind):
    import llama_cpp

    settings = llama_cpp.llama_model_quantize_default_params()
    settings.ftype = {"F32": 0, "F16": 1, "BF16": 32, "Q4_0": 2}[kind]
    settings.allow_requantize = True
    # The embedding and the head would get another type otherwise.
    settings.token_embedding_type = settings.output_tensor_type = {"F32": 0, "F16": 1, "BF16": 30, "Q4_0": 2}[kind]
    return llama_cpp.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(settings))


def write_checkpoint(source, folder):
    """Transformers does not save what it loaded from a GGUF file, so the weights move to a fresh model first."""
    import torch
    import transformers

    path = pathlib.Path(source)
    arguments = {"gguf_file": path.name}
    loaded = transformers.AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **arguments)
    config = transformers.LlamaConfig(**{
        key: value for key, value in loaded.config.to_dict().items() if key != "quantization_config"
    })
    fresh = transformers.LlamaForCausalLM(config).float()
    fresh.load_state_dict({name: value.float() for name, value in loaded.state_dict().items()})
    fresh.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(path.parent, **arguments).save_pretrained(folder)


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    sys.exit({"gguf": convert_gguf, "checkpoint": write_checkpoint}[command](*rest))
