"""Model files that somebody has tampered with, with checksums that are right."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from prunus.io import _checksum

Header = dict[str, Any]
Tensors = dict[str, torch.Tensor]

NASTY: list[Any] = [None, -1, 0, 1, 2, 7, 13, 60_000_000, 2**63, 1e308, float("nan"), "", "S2000000000", [], {}, True]


def read(path: Path) -> tuple[Header, Tensors]:
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()["prunus"]), tensors


def write(path: Path, header: Header, tensors: Tensors) -> Path:
    text = json.dumps(header)
    flat = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(flat, path, metadata={"prunus": text, "sha256": _checksum(text, flat)})
    return path


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something can be changed in a header."""
    found = [path] if path else []
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        found += places(entry, (*path, key))
    return found


def with_other_header(header: Header, random: np.random.Generator) -> Header:
    """One entry of the header is changed or removed."""
    changed = copy.deepcopy(header)
    options = places(header)
    *path, last = options[random.integers(len(options))]
    owner: Any = changed
    for key in path:
        owner = owner[key]
    if random.random() < 0.15:
        del owner[last]
    else:
        owner[last] = NASTY[random.integers(len(NASTY))]
    return changed


def with_other_tensor(tensors: Tensors, random: np.random.Generator) -> Tensors:
    """One tensor has another shape, type or number, or is not there, or there is one more."""
    name = sorted(tensors)[random.integers(len(tensors))]
    tensor = tensors[name].clone()
    what = random.integers(7)
    if what == 0 and tensor.numel():
        number = [float("nan"), float("inf"), -1.0, 1e30, 2.0][random.integers(5)]
        if tensor.dtype == torch.bool:
            tensor = ~tensor
        else:
            flat = tensor.flatten()
            flat[random.integers(len(flat))] = number if tensor.is_floating_point() else int(random.integers(-9, 10**6))
            tensor = flat.view(tensor.shape)
    elif what == 1:
        tensor = tensor[:0] if tensor.ndim else tensor
    elif what == 2:
        tensor = torch.cat((tensor, tensor)) if tensor.ndim else tensor
    elif what == 3:
        tensor = tensor.flatten()[None] if tensor.ndim < 2 else tensor.flatten()
    elif what == 4:
        tensor = tensor.to([torch.int32, torch.float64, torch.float16, torch.bool][random.integers(4)])
    elif what == 5:
        return {other: value for other, value in tensors.items() if other != name}
    else:
        return tensors | {f"{name}.more": tensor}
    return tensors | {name: tensor}
