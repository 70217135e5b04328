"""The content of model files as text."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.printer
from onnx import numpy_helper
from safetensors import safe_open

import prunus

__all__ = ["as_json", "digests", "onnx_text", "saved_texts"]


def saved_texts(model: Any, path: Path) -> dict[str, str]:
    """What `prunus.save` writes to this file: a digest for each tensor, and all else as JSON.

    Versions, the numbers of formats, checksums of the whole and the seconds of training are left out.
    """
    prunus.save(model, path)
    with safe_open(path, framework="np") as file:
        metadata, names = file.metadata(), sorted(file.keys())
        tensors = digests((name, file.get_tensor(name)) for name in names)
    header = json.loads(metadata["prunus"])
    del header["prunus"], header["format"]
    header.get("encoder", {}).pop("format", None)
    for part in (header, *header.get("trees", ())):
        part.get("fitted", {}).get("history_", {}).pop("seconds", None)
    return {"saved_tensors.txt": tensors, "saved.json": as_json(header)}


def onnx_text(estimator: Any, folder: Path) -> str:
    """The graph of an ONNX file: its nodes, and a digest for each array."""
    model = onnx.load(prunus.export_onnx(estimator, folder / "model.onnx"))
    arrays = digests((array.name, numpy_helper.to_array(array)) for array in model.graph.initializer)
    del model.graph.initializer[:]
    model.producer_version = ""
    return f"{onnx.printer.to_text(model)}\n{arrays}"


def as_json(record: Any) -> str:
    """A record with one value in each line, so that two of them can be compared."""
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def digests(arrays: Iterable[tuple[str, npt.NDArray[Any]]]) -> str:
    r"""A line for each array: its name, type, shape, and digits that change with any of its bits.

    >>> digests([("mass", np.ones(3))])
    'mass float64 (3,) cc143326a2646c60\n'
    """
    lines = []
    for name, array in arrays:
        content = repr(array.tolist()).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes()
        lines.append(f"{name} {array.dtype} {array.shape} {hashlib.sha256(content).hexdigest()[:16]}\n")
    return "".join(lines)
