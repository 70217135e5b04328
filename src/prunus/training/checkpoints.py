"""The state of a training run on disk: written whole or not at all, read without running code from the file."""

import io
import os
from pathlib import Path
from typing import Any

import torch

from prunus.errors import CheckpointError

__all__ = ["read_checkpoint", "write_checkpoint"]

FORMAT = "prunus checkpoint 1"


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Replace the file by this state; a run killed at any moment leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            torch.save({"format": FORMAT, **state}, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)  # it is there still only after an error, such as a full disk


def read_checkpoint(path: Path, fingerprint: dict[str, Any]) -> dict[str, Any]:
    """The state in the file, if it is of a run with this fingerprint (options and data)."""
    content = io.BytesIO(path.read_bytes())
    try:
        state: Any = torch.load(content, weights_only=True, map_location="cpu")
    except Exception as error:  # bytes that are no checkpoint raise whatever their first ones lead to
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
