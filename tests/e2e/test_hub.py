"""hf:// references: the hub's cache layout, downloads into it, and what goes wrong on the way (hub_server.py)."""

import os
import pathlib
import subprocess

import helpers
import hub_server
import numpy as np
import onnx
import pytest

REPOSITORY = "some-owner/tiny.model-1"
GRAPH, DATA = "onnx/model.onnx", "onnx/model.onnx_data"


def small_model(folder):
    """A graph y = x W with W in external data; returns (bytes of the graph, bytes of the data)."""
    weight = onnx.numpy_helper.from_array(np.arange(64 * 64, dtype=np.float32).reshape(64, 64) / 4096, "W")
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", 64])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["rows", 64])
    graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["x", "W"], ["y"])], "g", [x], [y], [weight])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, folder / "model.onnx", save_as_external_data=True, location="model.onnx_data", size_threshold=0)
    return (folder / "model.onnx").read_bytes(), (folder / "model.onnx_data").read_bytes()


@pytest.fixture
def hub(tmp_path):
    graph, data = small_model(tmp_path)
    files = {
        "config.json": b'{"model_type": "bert"}',
        "README.md": b"not needed",
        GRAPH: graph,
        DATA: data,
        "onnx/model_fp16.onnx": b"another variant, not asked for",
        "model.safetensors": b"not needed beside the export",
    }
    server = hub_server.Hub(REPOSITORY, files)
    yield server
    server.close()


def environment(hub, cache, **more):
    cleared = {k: v for k, v in os.environ.items() if not k.startswith("HF_") and k.lower() != "http_proxy"}
    return {**cleared, "HF_ENDPOINT": hub.url, "HF_HOME": str(cache), "no_proxy": "*", **more}


def inspect(hub, cache, model=f"hf://{REPOSITORY}", **more):
    command = [str(helpers.find_binary()), "inspect", model, "--json"]
    return subprocess.run(command, env=environment(hub, cache, **more), capture_output=True, text=True, timeout=60)


def repository_of(cache):
    return cache / "hub" / "models--some-owner--tiny.model-1"


def test_downloads_what_the_export_needs_in_the_hubs_layout(decant, hub, tmp_path):
    cache = tmp_path / "cache"
    done = inspect(hub, cache)
    assert done.returncode == 0, done.stderr
    folder = repository_of(cache)
    assert (folder / "refs/main").read_text() == hub_server.COMMIT
    snapshot = folder / "snapshots" / hub_server.COMMIT
    present = {str(p.relative_to(snapshot)) for p in snapshot.rglob("*") if not p.is_dir()}
    assert present == {"config.json", GRAPH, DATA}
    for path in present:
        link = snapshot / path
        assert link.is_symlink() and not os.path.isabs(os.readlink(link))
        assert link.read_bytes() == hub.files[path]
        assert link.resolve() == (folder / "blobs" / hub.etag(path)).resolve()
    assert not list((folder / "blobs").glob("*.incomplete"))


def test_the_cache_serves_without_the_network(decant, hub, tmp_path):
    cache = tmp_path / "cache"
    assert inspect(hub, cache).returncode == 0
    asked = len(hub.requests)
    for more in ({}, {"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
        assert inspect(hub, cache, **more).returncode == 0
    assert inspect(hub, cache, model=f"hf://{REPOSITORY}@{hub_server.COMMIT}/{GRAPH}").returncode == 0
    assert len(hub.requests) == asked


def test_huggingface_hub_reads_the_cache(decant, hub, tmp_path):
    import huggingface_hub

    cache = tmp_path / "cache"
    assert inspect(hub, cache).returncode == 0
    path = huggingface_hub.hf_hub_download(REPOSITORY, GRAPH, cache_dir=cache / "hub", local_files_only=True)
    assert pathlib.Path(path).read_bytes() == hub.files[GRAPH]


def test_runs_through_links(decant, hub, tmp_path):
    import safetensors.numpy

    x = np.ones((3, 64), np.float32)
    safetensors.numpy.save_file({"x": x}, tmp_path / "in.safetensors")
    command = [decant, "forward", f"hf://{REPOSITORY}", "--inputs", tmp_path / "in.safetensors"]
    command += ["--outputs", tmp_path / "out.safetensors"]
    subprocess.run([str(c) for c in command], env=environment(hub, tmp_path / "cache"), check=True, timeout=60)
    got = safetensors.numpy.load_file(tmp_path / "out.safetensors")["y"]
    np.testing.assert_allclose(got, x @ np.frombuffer(hub.files[DATA], np.float32).reshape(64, 64), rtol=1e-5)


def test_cut_downloads_continue(decant, hub, tmp_path):
    hub.cut_after[DATA] = [5000, 5000]
    done = inspect(hub, tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    assert (DATA, 5000) in hub.ranges and (DATA, 10000) in hub.ranges


def test_a_killed_download_is_continued_by_the_next_process(decant, hub, tmp_path):
    cache = tmp_path / "cache"
    partial = repository_of(cache) / "blobs" / f"{hub.etag(DATA)}.incomplete"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(hub.files[DATA][:7000])
    assert inspect(hub, cache).returncode == 0
    assert (DATA, 7000) in hub.ranges


def test_a_stale_partial_file_is_dropped(decant, hub, tmp_path):
    cache = tmp_path / "cache"
    partial = repository_of(cache) / "blobs" / f"{hub.etag(DATA)}.incomplete"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(b"\0" * 7000)
    assert inspect(hub, cache).returncode == 0


def test_a_server_without_ranges(decant, hub, tmp_path):
    hub.ignore_ranges = True
    hub.cut_after[DATA] = [5000]
    assert inspect(hub, tmp_path / "cache").returncode == 0


def test_waits_when_asked_to(decant, hub, tmp_path):
    hub.too_many["config.json"] = 2
    assert inspect(hub, tmp_path / "cache").returncode == 0


def test_token_goes_to_the_hub_only(decant, hub, tmp_path):
    hub.token = "hf_secret"
    denied = inspect(hub, tmp_path / "cache")
    assert denied.returncode == 1 and "HF_TOKEN" in denied.stderr
    done = inspect(hub, tmp_path / "cache", HF_TOKEN="hf_secret")
    assert done.returncode == 0, done.stderr
    assert hub.tokens_at_storage and not any(hub.tokens_at_storage)
    assert "hf_secret" not in done.stderr + done.stdout + denied.stderr


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("hf://some-owner/absent", ["not found", "404"]),
        (f"hf://{REPOSITORY}@no-such-branch", ["not found", "404"]),
        (f"hf://{REPOSITORY}/absent.onnx", ["no file 'absent.onnx'"]),
        ("hf://some-owner", ["hf://owner/name"]),
        ("hf://../etc", ["hf://owner/name"]),
        (f"hf://{REPOSITORY}/../../x", ["hf://owner/name"]),
    ],
)
def test_wrong_references(decant, hub, tmp_path, model, words):
    done = inspect(hub, tmp_path / "cache", model=model)
    assert done.returncode == 1
    for word in words:
        assert word in done.stderr


def test_offline_without_a_copy(decant, hub, tmp_path):
    done = inspect(hub, tmp_path / "cache", HF_HUB_OFFLINE="1")
    assert done.returncode == 1 and "HF_HUB_OFFLINE" in done.stderr and not hub.requests


@pytest.mark.parametrize("fault", ["content", "longer", "unsafe path", "no network"])
def test_lies_keep_nothing(decant, hub, tmp_path, fault):
    more = {}
    if fault == "content":
        hub.wrong_bytes.add(DATA)
    elif fault == "longer":
        hub.wrong_size[DATA] = 10
    elif fault == "unsafe path":
        hub.files["../escape.json"] = b"{}"
    else:
        more["HF_ENDPOINT"] = "http://127.0.0.1:9"
    done = inspect(hub, tmp_path / "cache", **more)
    assert done.returncode in (1, 3) and done.stderr.strip()
    assert not (repository_of(tmp_path / "cache") / "refs/main").exists()
    assert not (repository_of(tmp_path / "cache") / "blobs" / hub.etag(DATA)).exists()
    assert not (tmp_path / "escape.json").exists()


def test_two_processes_at_once_download_once(decant, hub, tmp_path):
    command = [str(decant), "inspect", f"hf://{REPOSITORY}", "--json"]
    runs = [
        subprocess.Popen(command, env=environment(hub, tmp_path / "cache"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for run in runs:
        _, errors = run.communicate(timeout=60)
        assert run.returncode == 0, errors
    assert hub.requests.count(f"/storage/{DATA}") == 1
