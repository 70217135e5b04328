"""A graph of ONNX operators as plain records. It does not need the package onnx; `prunus.onnx.files` writes it."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["TEXT", "Graph", "Node", "Port"]

TEXT = np.dtype(object)
"""The dtype of strings."""


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
