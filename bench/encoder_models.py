"""Random exports of encoder shapes: ViT-B/16 for images, MiniLM-L6 for text. Needs torch, transformers and onnx.

Usage: encoder_models.py FOLDER [--exporter dynamo|script]. Writes FOLDER/vit_b16/model.onnx and FOLDER/minilm_l6/model.onnx.
"""

import argparse
import pathlib

import torch
from transformers import BertConfig, BertModel, ViTConfig, ViTForImageClassification


class Classify(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values):
        return self.model(pixel_values).logits


class Embed(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.model(input_ids, attention_mask, token_type_ids).last_hidden_state


def export(model, inputs, dynamic, target, output, dynamo):
    target.parent.mkdir(parents=True, exist_ok=True)
    if dynamo:
        torch.onnx.export(model.eval(), args=(), kwargs=inputs, f=str(target), dynamo=True, output_names=[output],
                          dynamic_shapes=dynamic, external_data=False, verbose=False)
        return
    torch.onnx.export(model.eval(), tuple(inputs.values()), str(target), dynamo=False, opset_version=17,
                      input_names=list(inputs), output_names=[output],
                      dynamic_axes={**{n: dict(axes) for n, axes in dynamic.items()}})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--exporter", choices=("dynamo", "script"), default="dynamo")
    args = parser.parse_args()
    dynamo = args.exporter == "dynamo"
    torch.manual_seed(0)
    dim = torch.export.Dim.DYNAMIC if dynamo else None
    vit = args.folder / "vit_b16/model.onnx"
    if not vit.exists():
        model = Classify(ViTForImageClassification(ViTConfig(num_labels=1000)))
        export(model, {"pixel_values": torch.rand(2, 3, 224, 224)}, {"pixel_values": {0: dim or "batch"}}, vit, "logits",
               dynamo)
    minilm = args.folder / "minilm_l6/model.onnx"
    if not minilm.exists():
        config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = {n: torch.ones(2, 9, dtype=torch.int64) for n in names}
        dynamic = {n: {0: dim or "batch", 1: dim or "sequence"} for n in names}
        export(Embed(BertModel(config, add_pooling_layer=False)), inputs, dynamic, minilm, "last_hidden_state", dynamo)


if __name__ == "__main__":
    main()
