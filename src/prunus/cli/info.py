"""``prunus info``: versions of packages, backends and devices of this machine."""

import argparse
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from prunus import __version__
from prunus.cli.command import Outcome, pairs

__all__ = ["add_arguments", "run"]

PACKAGES = {
    "torch": None,
    "numpy": None,
    "scikit-learn": None,
    "safetensors": None,
    "pandas": "tables",
    "pyarrow": "tables",
    "optuna": "tune",
    "matplotlib": "plot",
    "onnx": "onnx",
    "rich": "progress",
}
"""Packages that prunus uses, and the extra of prunus that installs each; None if it is always installed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no options of its own."""


def run(options: argparse.Namespace) -> Outcome:  # noqa: ARG001
    """Collect versions, backends and devices."""
    from prunus.ops.backends import BACKENDS, available_backends

    available = available_backends()
    record: dict[str, Any] = {
        "prunus": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "backends": {name: name in available for name in BACKENDS},
        "devices": _devices(),
    }
    return Outcome(record, pairs(_lines(record)))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _devices() -> list[str]:
    import torch

    cuda = [f"cuda:{i}, {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count())]
    return [f"cpu, {os.cpu_count()} cores, {torch.get_num_threads()} threads", *cuda]


def _lines(record: dict[str, Any]) -> list[tuple[str, Any]]:
    from prunus.ops.backends import BACKENDS

    lines = [(name, record[name]) for name in ("prunus", "python", "system")]
    for name, found in record["packages"].items():
        lines.append((name, found or f"not installed: pip install 'prunus[{PACKAGES[name]}]'"))
    for name, is_available in record["backends"].items():
        lines.append(("backend", name if is_available else f"{name}, not available: {BACKENDS[name].cure}"))
    return [*lines, *(("device", device) for device in record["devices"])]
