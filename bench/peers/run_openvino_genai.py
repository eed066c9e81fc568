"""OpenVINO GenAI on a GGUF file, which it converts while loading; f32 arithmetic for an F32 or F16 file."""

import time

import numpy as np
import openvino
import openvino_genai
import runner


class Stamps(openvino_genai.StreamerBase):
    def __init__(self):
        super().__init__()
        self.times = []

    def write(self, tokens):
        self.times += [time.perf_counter()] * (len(tokens) if isinstance(tokens, (list, tuple)) else 1)
        return openvino_genai.StreamingStatus.RUNNING

    def end(self):
        pass


class OpenvinoGenai:
    def load(self, model, threads):
        properties = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        if "bf16" not in model.lower():
            properties["INFERENCE_PRECISION_HINT"] = "f32"
        self.pipeline = openvino_genai.LLMPipeline(model, "CPU", **properties)

    def run(self, ids, count):
        array = np.array([ids], np.int64)
        tokens = openvino_genai.TokenizedInputs(openvino.Tensor(array), openvino.Tensor(np.ones_like(array)))
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos = count + 1, True
        config.do_sample = config.apply_chat_template = False
        stamps = Stamps()
        self.pipeline.generate(tokens, config, stamps)
        return stamps.times


runner.main(OpenvinoGenai())
