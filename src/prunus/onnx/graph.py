"""The graph of an ONNX model while it is built, and the file that it becomes."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prunus import __version__
from prunus.files import write_bytes

__all__ = ["TEXT", "Graph", "newest_opset", "to_proto", "write"]

TEXT = np.dtype(object)
"""The dtype of strings."""
LABELS_OPSET = 2
"""The first version of the operators for machine learning whose LabelEncoder makes numbers of texts."""


class Node(NamedTuple):
    """One application of an operator, with one result; its domain is ONNX's default one unless attributes name it."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]


class Port(NamedTuple):
    """An input or an output of a graph, of shape (n,) or (n, width)."""

    name: str
    dtype: np.dtype[Any]
    width: int | None


class Graph:
    """Operators in the order in which they run; values are referred to by their names.

    Parameters
    ----------
    taken : iterable of str
        Names of inputs and outputs, which must not be used for intermediate values.

    Examples
    --------
    >>> graph = Graph(["X", "twice"])
    >>> x = graph.add_input("X", np.float64, 3)
    >>> graph.add_output("twice", graph.add("Mul", x, np.array(2.0)), np.float64, 3)
    >>> [(node.op, node.inputs, node.output) for node in graph.nodes]
    [('Mul', ('X', 'value_0'), 'value_1'), ('Identity', ('value_1',), 'twice')]
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []
        self.nodes: list[Node] = []
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self._taken = set(taken)
        self._count = 0

    def add_input(self, name: str, dtype: npt.DTypeLike, width: int) -> str:
        """Add an input of shape (n, width), and return its name."""
        self.inputs.append(Port(name, np.dtype(dtype), width))
        return name

    def add_output(self, name: str, value: str, dtype: npt.DTypeLike, width: int | None) -> None:
        """Make a value an output; if width is None its shape is (n,)."""
        self.nodes.append(Node("Identity", (value,), name, {}))
        self.outputs.append(Port(name, np.dtype(dtype), width))

    def add(self, op: str, *inputs: str | npt.NDArray[Any], **attributes: Any) -> str:
        """Apply an operator to values and arrays, and return the name of the result."""
        names = tuple(value if isinstance(value, str) else self._store(value) for value in inputs)
        self.nodes.append(Node(op, names, self._new_name(), attributes))
        return self.nodes[-1].output

    def cast(self, value: str, dtype: npt.DTypeLike) -> str:
        """Convert a value to another type, and return the name of the result."""
        return self.add("Cast", value, to=np.dtype(dtype))

    def reshape(self, value: str, *sizes: int) -> str:
        """Give a value another shape, where a size of 0 keeps the old size, and return the name of the result."""
        return self.add("Reshape", value, np.array(sizes, dtype=np.int64))

    def repeat(self, row: npt.NDArray[Any], like: str) -> str:
        """Repeat a row, (k,), for each row of another value, (n, ...), and return the name of the result, (n, k)."""
        n = self.add("Gather", self.add("Shape", like), np.array([0]))
        return self.add("Expand", row[None], self.add("Concat", n, np.array([len(row)]), axis=0))

    def _store(self, array: npt.NDArray[Any]) -> str:
        name = self._new_name()
        self.arrays[name] = np.ascontiguousarray(array)
        return name

    def _new_name(self) -> str:
        name = f"value_{self._count}"
        self._count += 1
        return self._new_name() if name in self._taken else name


if TYPE_CHECKING:
    import onnx


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
