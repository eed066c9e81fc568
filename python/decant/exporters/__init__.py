"""Exports as Transformers' exporters write them, run by decant. Names and arguments are those of
`transformers.exporters`; tracing models is not among them yet.

>>> from decant.exporters import ExportedModel
>>> exported = ExportedModel.from_pretrained("exported")
>>> exported(input_ids=ids, attention_mask=mask).logits
>>> exported.generate(ids, max_new_tokens=20)
"""

from decant.exporters.exported_model import ExportedComponent, ExportedModel
from decant.exporters.metadata import ExportMetadata
from decant.exporters.outputs import ModelOutput
from decant.exporters.runner import ModelRunner

__all__ = ["ExportMetadata", "ExportedComponent", "ExportedModel", "ModelOutput", "ModelRunner"]
