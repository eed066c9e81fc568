"""Image and audio networks: PyTorch's exports of small random modules against eager PyTorch."""

import numpy as np
import pytest
import torch
from helpers import forward
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, groups=groups, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(x + self.body(x))


MODULES = {
    "residual": (
        nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                      Residual(16, 1), Residual(16, 4), Residual(16, 16), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                      nn.Linear(16, 5)), (2, 3, 33, 47)),
    "dilated": (nn.Sequential(nn.Conv2d(4, 6, 3, padding=2, dilation=2), nn.AvgPool2d(3, 2, 1), nn.Conv2d(6, 3, (1, 5))),
                (1, 4, 19, 23)),
    "ceil pools": (nn.Sequential(nn.MaxPool2d(3, 2, ceil_mode=True), nn.AvgPool2d(2, 2, ceil_mode=True)), (1, 2, 12, 15)),
    "upsampled": (nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.Upsample(scale_factor=2),
                                nn.Upsample(scale_factor=1.5, mode="bilinear"), nn.PixelShuffle(2)), (1, 2, 8, 10)),
    "transposed": (nn.Sequential(nn.ConvTranspose2d(6, 4, 3, 2, 1, output_padding=1, groups=2), nn.InstanceNorm2d(4)),
                   (2, 6, 5, 7)),
    "speech": (nn.Sequential(nn.Conv1d(8, 12, 3, padding=1), nn.GELU(), nn.Conv1d(12, 12, 3, 2, 1),
                             nn.Conv1d(12, 12, 16, padding=8, groups=4)), (2, 8, 50)),
    "volume": (nn.Sequential(nn.Conv3d(2, 3, 3, padding=1), nn.MaxPool3d(2)), (1, 2, 6, 8, 4)),
}


def randomize(module):
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.uniform_(-0.5, 0.5)
            layer.running_var.uniform_(0.5, 2)
            layer.weight.data.uniform_(0.5, 2)
            layer.bias.data.uniform_(-0.5, 0.5)
    return module.eval()


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("name", MODULES)
def test_module(tmp_path, name, backend):
    torch.manual_seed(0)
    module, shape = MODULES[name]
    randomize(module)
    x = torch.randn(shape)
    path = tmp_path / "model.onnx"
    torch.onnx.export(module, (x,), str(path), dynamo=False, opset_version=17, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {i: f"d{i}" for i in range(len(shape)) if i != 1}})
    with torch.no_grad():
        want = module(x).numpy()
        larger = torch.randn([n + (2 if i != 1 else 0) for i, n in enumerate(shape)])
        want_larger = module(larger).numpy()
    np.testing.assert_allclose(forward(path, {"x": x.numpy()}, "--backend", backend)["y"], want, atol=2e-5, rtol=1e-4)
    got = forward(path, {"x": larger.numpy()}, "--backend", backend)["y"]
    np.testing.assert_allclose(got, want_larger, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("opset", [9, 10, 11, 13, 18])
def test_opsets(tmp_path, opset):
    """Upsample until opset 9, Resize in its forms after it; BatchNormalization lost and gained attributes."""
    torch.manual_seed(0)
    module = randomize(nn.Sequential(nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), nn.Upsample(scale_factor=2),
                                     nn.ReLU(), nn.Conv2d(4, 3, 3), nn.MaxPool2d(2)))
    x = torch.randn(1, 2, 8, 10)
    path = tmp_path / "model.onnx"
    torch.onnx.export(module, (x,), str(path), dynamo=False, opset_version=opset, input_names=["x"],
                      output_names=["y"], do_constant_folding=False)
    with torch.no_grad():
        want = module(x).numpy()
    np.testing.assert_allclose(forward(path, {"x": x.numpy()})["y"], want, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrence(tmp_path, kind):
    torch.manual_seed(0)
    module = getattr(nn, kind)(5, 7, num_layers=2, bidirectional=True, batch_first=True).eval()
    x = torch.randn(2, 6, 5)
    path = tmp_path / "model.onnx"
    torch.onnx.export(module, (x,), str(path), dynamo=False, opset_version=17, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "batch", 1: "steps"}})
    with torch.no_grad():
        want = module(x)[0].numpy()
    np.testing.assert_allclose(forward(path, {"x": x.numpy()})["y"], want, atol=1e-5, rtol=1e-4)
