"""The model that an estimator trains: built from its options, started from its data."""

from collections.abc import Callable

import torch
from torch import nn

from prunus.errors import InputTypeError, InputValueError
from prunus.nn import (
    AdditiveHead,
    ConstantHead,
    ELUSplit,
    LinearHead,
    LinearSplit,
    MLPHead,
    MLPSplit,
    SparseSplit,
    TreeLayer,
    TreeModel,
    Whiten,
    spread_splits,
)
from prunus.training import Samples

__all__ = ["LEAVES", "SPLITS", "build_model", "check_built_for", "start_model"]

SPLITS: dict[str, Callable[[int, int], nn.Module]] = {
    "linear": LinearSplit,
    "elu": ELUSplit,
    "mlp": MLPSplit,
    "sparse": SparseSplit,
}
LEAVES: dict[str, Callable[[int, int, int], nn.Module]] = {
    "additive": AdditiveHead,
    "constant": ConstantHead,
    "linear": LinearHead,
    "mlp": lambda features, depth, outputs: MLPHead(features, depth, outputs, hidden=(256, 256)),
}
_HEADS = {"additive": AdditiveHead, "constant": ConstantHead, "linear": LinearHead, "mlp": MLPHead}

START_SAMPLES = 16_384
"""Of which the start is made: medians of more are not worth their time."""
LEAST_SPREAD = 0.3
"""Of encoded columns, which are scaled to about 1: those that vary less hold rare events."""
MAX_WHITENED = 2_000
"""More features than this are not decorrelated: the eigenvectors would take longer than the training."""


def build_model(
    features: int,
    outputs: int,
    *,
    depth: int,
    pruning_strength: float,
    batch_size: int,
    split: str | Callable[[int, int], nn.Module],
    leaf: str,
) -> TreeModel:
    """A model for this many inputs and outputs.

    >>> options = {"depth": 2, "pruning_strength": 1.0, "batch_size": 32, "split": "linear", "leaf": "constant"}
    >>> build_model(3, 1, **options)(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """
    make_split = SPLITS.get(split) if isinstance(split, str) else split
    if make_split is None or not callable(make_split):
        raise InputValueError(f"split must be one of {list(SPLITS)} or a callable(features, depth), however: {split!r}")
    made = make_split(features, depth)
    if not isinstance(made, nn.Module):
        raise InputTypeError(f"split(features, depth) must return a torch.nn.Module, however: {type(made).__name__}")
    tree = TreeLayer(made, depth, pruning_strength, batch_size=batch_size)
    inputs = Whiten(features) if features <= MAX_WHITENED else None
    return TreeModel(tree, LEAVES[leaf](features, depth, outputs), inputs)


@torch.no_grad()
def start_model(model: TreeModel, train: Samples, generator: torch.Generator, *, decorrelation: float = 0.5) -> None:
    """Decorrelate the inputs, unless it is 0 or splits are sparse, and spread the samples evenly over the leaves."""
    if isinstance(model.tree.split, SparseSplit):
        decorrelation = 0.0
    if isinstance(model.inputs, Whiten):
        model.inputs.fit(train.x, train.weight, power=decorrelation, least_spread=LEAST_SPREAD)
    if hasattr(model.tree.split, "scores"):
        some = torch.randperm(len(train), generator=generator)[:START_SAMPLES].to(train.x.device)
        spread_splits(model.tree.split, model.inputs(train.x[some]), generator=generator)


def check_built_for(model: TreeModel, *, depth: int, split: str | Callable[[int, int], nn.Module], leaf: str) -> None:
    """What was built stays: training that goes on cannot take up another depth, split or leaf."""
    for name, given, same in (
        ("depth", depth, model.tree.depth == depth),
        ("split", split, not isinstance(split, str) or type(model.tree.split) is SPLITS[split]),
        ("leaf", leaf, type(model.head) is _HEADS[leaf]),
    ):
        if not same:
            raise InputValueError(
                f"{name} must be as in the fit that is to be gone on with, however: {name}={given!r}. Set it back, or "
                "fit anew with warm_start=False"
            )
