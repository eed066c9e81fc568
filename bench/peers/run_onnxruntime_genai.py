"""onnxruntime-genai on a model made by its own builder, with past and present in one buffer."""

import json
import time

import numpy as np
import onnxruntime_genai as genai
import runner


class OnnxRuntimeGenai:
    def load(self, model, threads):
        config = genai.Config(model)
        config.clear_providers()
        session = {"intra_op_num_threads": threads, "inter_op_num_threads": 1}
        overlay = {"model": {"decoder": {"session_options": session}}, "search": {"past_present_share_buffer": True}}
        config.overlay(json.dumps(overlay))
        self.model = genai.Model(config)

    def run(self, ids, count):
        length = len(ids) + count + 2
        settings = genai.GeneratorParams(self.model)
        settings.set_search_options(max_length=length, min_length=length, do_sample=False)
        generator = genai.Generator(self.model, settings)
        generator.append_tokens(np.array([ids], np.int32))
        stamps = []
        for _ in range(count + 1):
            generator.generate_next_token()
            stamps.append(time.perf_counter())
        return stamps


runner.main(OnnxRuntimeGenai())
