"""The model that an estimator trains: how it is built from options, and where it starts, given the data."""

from collections.abc import Sequence

import torch

from prunus.errors import InputValueError
from prunus.nn import TreeLayer, TreeModel, Whiten, spread_splits
from prunus.nn.initialize import can_spread
from prunus.nn.registry import (
    SplitFactory,
    build_head,
    build_split,
    chooses_columns,
    decorrelates,
    leaf_name,
    network_options,
    shares_pieces,
    split_name,
)
from prunus.training import Samples

__all__ = ["build_model", "check_built_for", "start_model"]

START_SAMPLES = 16_384
"""Number of samples that the start is computed from: medians of more samples are hardly more exact."""
LEAST_SPREAD = 0.3
"""See `Whiten.fit`. Encoded columns have a standard deviation of about 1; those with a smaller one are rare events."""
MAX_WHITENED = 2_000
"""If there are more inputs than this they are not decorrelated: eigenvectors would take longer than the training."""


def build_model(
    features: int,
    outputs: int,
    *,
    depth: int,
    pruning_strength: float,
    batch_size: int,
    split: str | SplitFactory,
    leaf: str,
    max_columns: int | None = None,
    owner: Sequence[int] | None = None,
    is_piece: Sequence[bool] = (),
    hidden: Sequence[int] = (64, 64, 64),
    dropout: float = 0.0,
) -> TreeModel:
    """A model for this many inputs and outputs.

    With `max_columns`, splits are linear functions of at most this many columns, and `owner` is the column that each
    input belongs to. `is_piece` says which inputs are pieces of a number: with leaves that share curves, these are for
    the curves alone, and splits do not use them.

    >>> options = {"depth": 2, "pruning_strength": 1.0, "batch_size": 32, "split": "linear", "leaf": "constant"}
    >>> build_model(3, 1, **options)(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """
    made = build_split(split, features, depth, max_columns=max_columns, owner=owner)
    tree = TreeLayer(made, depth, pruning_strength, batch_size=batch_size)
    inputs = Whiten(features) if features <= MAX_WHITENED else None
    pieces = [i for i, is_one in enumerate(is_piece) if is_one]
    head = build_head(leaf, features, depth, outputs, hidden=hidden, dropout=dropout, pieces=pieces)
    has_curves = bool(pieces) and shares_pieces(leaf)
    if inputs is not None and head.curved:
        inputs.late = torch.tensor(is_piece)
    if max_columns is None and not has_curves:
        return TreeModel(tree, head, inputs)
    split_inputs = Whiten(features)
    if has_curves:
        split_inputs.left_out = torch.tensor(is_piece)
    return TreeModel(tree, head, inputs, split_inputs)


@torch.no_grad()
def start_model(
    model: TreeModel,
    train: Samples,
    generator: torch.Generator,
    *,
    decorrelation: float = 0.5,
    bends_at_root: bool = False,
) -> None:
    """Decorrelate the inputs, unless the splits need them as they are, and spread samples evenly over the leaves.

    If it `bends_at_root`, the root starts where the numbers to be predicted bend most, so that it depends less on
    chance; all other splits start at random.
    """
    split = model.tree.split
    if isinstance(model.inputs, Whiten):
        power = decorrelation if decorrelates(split) else 0.0
        model.inputs.fit(train.x, train.weight, power=power, least_spread=LEAST_SPREAD)
    if isinstance(model.split_inputs, Whiten):
        few = train.x.shape[1] <= MAX_WHITENED
        power = decorrelation if few and decorrelates(split) and not chooses_columns(split) else 0.0
        model.split_inputs.fit(train.x, train.weight, power=power, least_spread=LEAST_SPREAD)
    if can_spread(split):
        some = torch.randperm(len(train), generator=generator)[:START_SAMPLES].to(train.x.device)
        wanted = train.y[some] if bends_at_root else None
        spread_splits(split, model.tree_inputs(train.x[some]), wanted=wanted, generator=generator)


def check_built_for(
    model: TreeModel, *, depth: int, split: str | SplitFactory, leaf: str, hidden: Sequence[int], dropout: float
) -> None:
    """Raise an error if the options ask for another model than that of the last fit."""
    built = network_options(model.head)
    for name, given, same in (
        ("depth", depth, model.tree.depth == depth),
        ("split", split, not isinstance(split, str) or split_name(model.tree.split) == split),
        ("leaf", leaf, leaf_name(model.head) == leaf),
        ("hidden_layer_sizes", hidden, built is None or built[0] == tuple(hidden)),
        ("dropout", dropout, built is None or built[1] == dropout),
    ):
        if not same:
            raise InputValueError(
                f"{name} must be the same as in the last fit to continue it, got {name}={given!r}. Set it back, or "
                "start again with warm_start=False"
            )
