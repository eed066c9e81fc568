"""Reference runs with ONNX Runtime: one graph, and the decoding loops of every layout. Inputs are bound by name."""

import numpy as np
import onnxruntime

TYPES = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}


class Graph:
    """One graph on the CPU, one thread. Raises what ONNX Runtime raises when it cannot load the file."""

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        # Fused products of dequantized weights would quantize their activations, which the graph does not ask for.
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]

    def run(self, feeds):
        return dict(zip(self.outputs, self.session.run(None, feeds)))

    def takes(self, name):
        return name in self.inputs


def is_past(name):
    return name.startswith("past")


def past_name(present):
    """The input that takes an output's value at the next step; None when it is no state."""
    if present.startswith("present_"):  # present_key_self_0
        return "past_" + present.removeprefix("present_")
    if present.startswith("present."):
        return "past_key_values." + present.removeprefix("present.")
    return None


def empty_past(graph, config, batch=1, dims=None):
    """Zero-length caches; a sliding layer of onnxruntime-genai gets a buffer of its window."""
    decoder = config.get("genai", {}).get("model", {}).get("decoder", {})
    known = {"batch_size": batch, "kv_cache_dim": decoder.get("head_size", 0), **(dims or {})}
    known["past_sliding_length"] = decoder.get("sliding_window", {}).get("window_size", 0)
    past = {}
    for name, i in graph.inputs.items():
        if is_past(name):
            shape = [d if isinstance(d, int) else known.get(d, 0) for d in i.shape]
            past[name] = np.zeros(shape, TYPES[i.type])
    return past


def feeds(graph, ids, past_length, past, constants, mask=None, positions=None):
    """Everything the graph asks for, by name; KeyError for an input that nothing here gives."""
    batch, count = ids.shape
    if mask is None:
        mask = np.ones((batch, past_length + count), np.int64)
    if positions is None:
        positions = np.broadcast_to(np.arange(past_length, past_length + count), (batch, count))
    made = {
        "input_ids": ids, "decoder_input_ids": ids, "attention_mask": mask, "position_ids": positions,
        "cache_position": np.arange(past_length, past_length + count), "use_cache_branch": np.array([past_length > 0]),
        **past, **constants,
    }
    return {name: np.ascontiguousarray(made[name].astype(TYPES[i.type])) for name, i in graph.inputs.items()}


def next_past(past, outputs):
    """Caches after a step; what a merged decoder gives for cross-attention from the second step on is empty."""
    result = dict(past)
    for name, value in outputs.items():
        target = past_name(name)
        if target and (value.size or target not in past):
            result[target] = value
    return result


def encoder_constants(encoder, inputs):
    """Names a decoder's constants after an encoder's outputs."""
    outputs = encoder.run({n: np.ascontiguousarray(inputs[n].astype(TYPES[i.type])) for n, i in encoder.inputs.items()})
    constants = {}
    for name, value in outputs.items():
        constants[name] = value
        if name in ("last_hidden_state", "hidden_states"):
            constants["encoder_hidden_states"] = value
        if name.startswith("present_"):
            constants[past_name(name)] = value
    hidden = constants["encoder_hidden_states"]
    constants["encoder_attention_mask"] = np.ones(hidden.shape[:2], np.int64)
    return constants


def greedy(step, config, start, count, first=None, constants=None):
    """`count` greedy ids after `start`, and the logits that chose each: through `step`, the first time through `first`."""
    constants = constants or {}
    graph = first or step
    past = empty_past(graph, config)
    given = {name for name in constants if is_past(name)}
    length, ids = 0, np.array([start], np.int64)
    chosen, scores = [], []
    while len(chosen) < count:
        if not any(is_past(name) for name in step.inputs):  # no past: everything again
            ids, length = np.array([start + chosen], np.int64), 0
        outputs = graph.run(feeds(graph, ids, length, {k: v for k, v in past.items() if k not in given}, constants))
        past = next_past(past, outputs)
        length += ids.shape[1]
        scores.append(outputs["logits"][0, -1].astype(np.float32))
        chosen.append(int(scores[-1].argmax()))
        ids, graph = np.array([[chosen[-1]]], np.int64), step
    return chosen, scores
