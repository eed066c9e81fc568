"""llama.cpp through llama-cpp-python's low-level interface, on a GGUF file."""

import ctypes
import pathlib
import time

import llama_cpp
import numpy as np
import runner


class LlamaCpp:
    def load(self, model, threads):
        self.silence = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.silence, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        parameters = llama_cpp.llama_model_default_params()
        # Weights of few bits repacked for AMX end in an illegal instruction with the wheels tried (0.3.36).
        parameters.use_extra_bufts = "amx_int8" not in pathlib.Path("/proc/cpuinfo").read_text()
        self.model = llama_cpp.llama_model_load_from_file(model.encode(), parameters)
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = 1024, 1024, 512
        settings.n_threads = settings.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, settings)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.batch = llama_cpp.llama_batch_init(1024, 0, 1)

    def step(self, ids, past):
        self.batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            self.batch.token[i], self.batch.pos[i] = token, past + i
            self.batch.n_seq_id[i], self.batch.seq_id[i][0] = 1, 0
            self.batch.logits[i] = i == len(ids) - 1
        if llama_cpp.llama_decode(self.context, self.batch):
            raise RuntimeError("llama_decode failed")
        logits = llama_cpp.llama_get_logits_ith(self.context, len(ids) - 1)
        return int(np.ctypeslib.as_array(logits, shape=(self.vocabulary,)).argmax())

    def run(self, ids, count):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        stamps, past = [], 0
        for _ in range(count + 1):
            token = self.step(ids, past)
            past += len(ids)
            ids = [token]
            stamps.append(time.perf_counter())
        return stamps


runner.main(LlamaCpp())
