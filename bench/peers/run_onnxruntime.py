"""ONNX Runtime on the plain export with a growing cache, which stays in its own buffers between the steps."""

import pathlib
import time

import numpy as np
import onnxruntime
import runner


class OnnxRuntime:
    def load(self, model, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        path = str(pathlib.Path(model) / "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name: value for value in self.session.get_inputs()}
        self.caches = [name for name in self.inputs if name.startswith("past_key_values.")]
        self.outputs = [value.name for value in self.session.get_outputs()]

    def step(self, ids, caches, past):
        binding = self.session.io_binding()
        feed = {
            "input_ids": np.array([ids], np.int64),
            "attention_mask": np.ones((1, past + len(ids)), np.int64),
            "position_ids": np.arange(past, past + len(ids), dtype=np.int64)[None],
        }
        for name, value in feed.items():
            if name in self.inputs:
                binding.bind_cpu_input(name, value)
        for name in self.caches:
            binding.bind_ortvalue_input(name, caches[name])
        for name in self.outputs:
            binding.bind_output(name, "cpu")
        self.session.run_with_iobinding(binding)
        made = dict(zip(self.outputs, binding.get_outputs()))
        token = int(made["logits"].numpy()[0, -1].argmax())
        return token, {name: made[name.replace("past_key_values.", "present.")] for name in self.caches}

    def run(self, ids, count):
        caches = {}
        for name in self.caches:
            _, heads, _, head = self.inputs[name].shape
            caches[name] = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((1, heads, 0, head), np.float32))
        stamps, past = [], 0
        for _ in range(count + 1):
            token, caches = self.step(ids, caches, past)
            past += len(ids)
            ids = [token]
            stamps.append(time.perf_counter())
        return stamps


runner.main(OnnxRuntime())
