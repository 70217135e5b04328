"""Graphs as ONNX files."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prunus import __version__
from prunus.files import write_bytes
from prunus.onnx.graph import Graph, Port

if TYPE_CHECKING:
    import onnx

__all__ = ["newest_opset", "to_proto", "write"]

LABELS_OPSET = 2
"""The first version of the operators for machine learning whose LabelEncoder makes numbers of texts."""


def newest_opset() -> int:
    """The newest version of the operators that the package onnx knows; an error if onnx is not installed."""
    try:
        from onnx.defs import onnx_opset_version
    except ImportError as error:
        raise ImportError("export_onnx needs the package onnx: pip install 'prunus[onnx]'") from error
    return onnx_opset_version()


def to_proto(graph: Graph, *, opset: int, name: str, doc: str, metadata: dict[str, str]) -> "onnx.ModelProto":
    """The graph as a model of the package onnx."""
    from onnx import helper, numpy_helper

    made = helper.make_graph(
        [
            helper.make_node(node.op, node.inputs, [node.output], **{k: _plain(v) for k, v in node.attributes.items()})
            for node in graph.nodes
        ],
        name,
        [_value_info(port) for port in graph.inputs],
        [_value_info(port) for port in graph.outputs],
        [numpy_helper.from_array(array, array_name) for array_name, array in graph.arrays.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    if any("domain" in node.attributes for node in graph.nodes):
        imports.append(helper.make_opsetid("ai.onnx.ml", LABELS_OPSET))
    model = helper.make_model(
        made,
        opset_imports=imports,
        ir_version=helper.find_min_ir_version_for(imports),  # so that the oldest possible runtimes read it
        producer_name="prunus",
        producer_version=__version__,
        doc_string=doc,
    )
    helper.set_model_props(model, metadata)
    return model


def write(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write the file; an error leaves an existing file as it was."""
    write_bytes(path, content)
    return Path(path)


def _plain(value: Any) -> Any:
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(value) if isinstance(value, np.dtype) else value


def _value_info(port: Port) -> "onnx.ValueInfoProto":
    from onnx import helper

    shape: list[str | int | None] = ["n"] if port.width is None else ["n", port.width]
    return helper.make_tensor_value_info(port.name, helper.np_dtype_to_tensor_dtype(port.dtype), shape)
