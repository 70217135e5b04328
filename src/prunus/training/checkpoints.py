"""Checkpoints: the state of a training run in a file.

A file is written completely or not at all, and reading it runs no code from it.
"""

import io
import zlib
from pathlib import Path
from typing import Any

import torch
from torch import nn

from prunus.errors import CheckpointError
from prunus.files import write_bytes
from prunus.training.losses import Loss, NamedLoss
from prunus.training.options import TrainerOptions
from prunus.training.samples import Samples, TrainingSamples

__all__ = ["described", "fingerprint", "read_checkpoint", "write_checkpoint"]

FORMAT = "prunus checkpoint 2"


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a state to a file; a run that is killed at any moment leaves the old file or the new one.

    Parameters
    ----------
    path : Path
        The file to write or to replace; its folder is made if it does not exist.
    state : dict
        Tensors and plain Python values by name, among them the run's "fingerprint".
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()  # torch would hide the reason why a file cannot be written
    torch.save({"format": FORMAT, **state}, content)
    write_bytes(path, content.getvalue())


def read_checkpoint(path: Path, fingerprint: dict[str, Any]) -> dict[str, Any]:
    """Read the state that `write_checkpoint` wrote.

    Parameters
    ----------
    path : Path
    fingerprint : dict
        The fingerprint of the current run. A file of a run with other options or data raises `CheckpointError`.

    Returns
    -------
    dict
        The state, with its tensors on the CPU.
    """
    content = io.BytesIO(path.read_bytes())
    try:
        state: Any = torch.load(content, weights_only=True, map_location="cpu")
    except Exception as error:  # a file of another kind can raise any exception
        raise CheckpointError(
            f"{path} is damaged or not a checkpoint of prunus; remove it, or name another file"
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of this version of prunus; remove it, or name another file")
    found = state["fingerprint"]
    different = [name for name in fingerprint if found.get(name) != fingerprint[name]]
    if different:
        changes = ", ".join(f"{name}: {found.get(name)} there, {fingerprint[name]} here" for name in different)
        raise CheckpointError(
            f"{path} belongs to another run ({changes}); use the same data and options, or remove the file"
        )
    return state


def fingerprint(
    options: TrainerOptions, loss: Loss, model: nn.Module, train: TrainingSamples, valid: Samples | None
) -> dict[str, Any]:
    """Describe everything that a run depends on, apart from the weights that it starts with.

    A checkpoint can be resumed only by a run with the same fingerprint.

    Parameters
    ----------
    options : TrainerOptions
    loss : callable
    model : Module
    train : TrainingSamples
        Training data.
    valid : Samples or None
        Validation data.

    Returns
    -------
    dict
        Options by name, and a short text for the loss, the model and the data each.
    """
    return _options(options, model) | {
        "loss": _name(loss),
        "training data": _digest(train.in_memory) + (f" of {len(train)}" if train.is_stream else ""),
        "validation data": "none" if valid is None else _digest(valid),
    }


def described(
    options: TrainerOptions, model: nn.Module, train: Samples, valid: Samples | None
) -> dict[str, float | str]:
    """The same in a few numbers and words, which processes that train together compare.

    Sums of data may differ by rounding where processes run on different machines.
    """
    found: dict[str, float | str] = {name: str(value) for name, value in _options(options, model).items()}
    for name, samples in (("training", train), ("validation", valid)):
        for kind in ("x", "y", "weight") if samples is not None else ():
            values = getattr(samples, kind)
            if values is not None:
                found[f"{name} {kind} of shape"] = str(tuple(values.shape))
                found[f"{name} {kind} with sum"] = float(values.sum(dtype=torch.float64))
    return found


def _options(options: TrainerOptions, model: nn.Module) -> dict[str, Any]:
    skipped = ("checkpoint", "checkpoint_every", "threads")
    return {name: value for name, value in vars(options).items() if name not in skipped} | {
        "optimizer": _name(options.optimizer),
        "model": f"{type(model).__name__} of {sum(p.numel() for p in model.parameters())} parameters",
        "layers and their options": _layers(model),
    }


def _name(option: object) -> str:
    if isinstance(option, NamedLoss):
        return str(option)
    return option if isinstance(option, str) else getattr(option, "__qualname__", type(option).__qualname__)


def _layers(model: nn.Module) -> str:
    """A checksum of the types and options of all layers, which does not depend on the layers' names."""
    layers = "; ".join(f"{type(module).__name__}({module.extra_repr()})" for module in model.modules())
    return f"checksum {zlib.crc32(layers.encode()):08x}"


def _digest(samples: Samples) -> str:
    """Number and checksum of samples; the checksum depends on values, targets, weights and their order."""
    checksum = 0
    for values in (samples.x, samples.y, samples.weight):
        if values is not None:
            as_bytes = values.detach().cpu().contiguous().view(-1).view(torch.uint8)
            checksum = zlib.crc32(f"{values.dtype} {tuple(values.shape)}".encode(), checksum)
            checksum = zlib.crc32(as_bytes.numpy().data, checksum)
    return f"{len(samples)} samples, checksum {checksum:08x}"
