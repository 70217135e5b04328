"""Model files: safetensors, with everything that is not a tensor as JSON in the header. Loading a file runs no code."""

import hashlib
import json
import os
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

import prunus
from prunus.errors import InputTypeError, ModelFileError
from prunus.files import replacing
from prunus.nn import TreeModel
from prunus.nn.registry import model_to_record, model_with_weights

__all__ = ["load", "save"]

FORMAT = 2
"""The format that is written and read."""
TREES = ("ArgminTreeClassifier", "ArgminTreeClusterer", "ArgminTreeRegressor")
FORESTS = ("ArgminForestClassifier", "ArgminForestRegressor")
READABLE = ("ReadableTreeClassifier", "ReadableTreeRegressor")


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator or a TreeModel to a file.

    Parameters
    ----------
    model : estimator of prunus, or TreeModel
        Options that are code, such as a loss function of your own, are left out with a warning; predictions do not
        need them. Paths and devices are stored as text. Out-of-bag predictions of forests are left out.
    path : str or path
        The file, which is replaced if it exists. By convention it ends in ``.prunus``.

    Examples
    --------
    >>> from prunus import ArgminTreeRegressor
    >>> tree = ArgminTreeRegressor(depth=1, max_epochs=1, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save(tree, f"{folder}/tree.prunus")
    ...     again = load(f"{folder}/tree.prunus")
    >>> bool((again.predict([[1.5]]) == tree.predict([[1.5]])).all())
    True
    """
    kind = type(model).__name__
    if isinstance(model, TreeModel):
        tensors, record = dict(model.state_dict()), {"model": model_to_record(model)}
    elif kind in (*FORESTS, *READABLE, *TREES) and type(model).__module__.startswith("prunus."):
        if kind in FORESTS:
            tensors, record = import_module("prunus.estimators.forest_storage").forest_to_record(model)
        elif kind in READABLE:
            tensors, record = import_module("prunus.estimators.readable_storage").readable_to_record(model)
        else:
            tensors, record = import_module("prunus.estimators.storage").to_record(model)
        _warn_of_code(record)
    else:
        raise InputTypeError(f"prunus.save takes {', '.join((*READABLE, *FORESTS, *TREES))} or TreeModel, got {kind}")
    header = {"format": FORMAT, "kind": kind, "prunus": prunus.__version__, **record}
    flat = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(header)
    _write(Path(path), flat, {"prunus": text, "sha256": _checksum(text, flat)})


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator of prunus, or TreeModel
    """
    path = Path(path)
    header, tensors = _read(path)
    try:
        if header["kind"] == "TreeModel":
            return model_with_weights(header["model"], tensors)
        if header["kind"] not in (*FORESTS, *READABLE, *TREES):
            raise ModelFileError(f"{path} contains a {header['kind']!r}, which this version of prunus does not know")
        kind = getattr(import_module("prunus.estimators"), header["kind"])
        if header["kind"] in FORESTS:
            return import_module("prunus.estimators.forest_storage").forest_from_record(kind, header, tensors)
        if header["kind"] in READABLE:
            return import_module("prunus.estimators.readable_storage").readable_from_record(kind, header, tensors)
        return import_module("prunus.estimators.storage").from_record(kind, header, tensors)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a header that was tampered with leads to
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {str(error)[:300]}") from error


def _write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write the file; an error leaves an existing file as it was."""
    try:
        with replacing(path) as partial:
            save_file(tensors, partial, metadata=metadata)
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}; free some space, or name another file") from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a file that prunus.save wrote")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if "prunus" not in metadata:
                raise ModelFileError(f"{path} is a safetensors file, but not one of prunus")
            header = _read_header(path, metadata["prunus"])
            # Clones are aligned as new tensors are; with another alignment matrix products may round differently.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except ModelFileError:
        raise
    except Exception as error:  # safetensors, JSON and memory each have errors of their own
        raise ModelFileError(f"{path} is not a model of prunus, or is cut off: {str(error)[:300]}") from error
    if metadata.get("sha256") != _checksum(metadata["prunus"], tensors):
        raise ModelFileError(f"{path} is damaged: its checksum is not that of its content. Save the model again")
    return header, tensors


def _checksum(header: str, tensors: dict[str, Tensor]) -> str:
    """A digest of everything that a file says: the header, and name, type, shape and numbers of each tensor."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\0{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        if tensor.numel():
            digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _read_header(path: Path, text: str) -> dict[str, Any]:
    header: Any = json.loads(text)
    if not isinstance(header, dict) or not isinstance(header.get("format"), int):
        raise ModelFileError(f"{path} is damaged: it does not say what format it has")
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was written by prunus {header.get('prunus')}, with format {header['format']}; this is prunus "
            f"{prunus.__version__}, which reads format {FORMAT}: upgrade with `pip install --upgrade prunus`"
        )
    if header["format"] < FORMAT:
        raise ModelFileError(f"{path} has format {header['format']}, and prunus reads format {FORMAT}: fit again")
    return header


def _warn_of_code(record: dict[str, Any]) -> None:
    if record["left_out"]:
        warnings.warn(
            f"options that are code or objects are not stored: {', '.join(record['left_out'])}. They will have their "
            "default values after loading; predictions do not need them",
            UserWarning,
            stacklevel=3,
        )
