"""The entries of the corpus: which estimators learn from which tables."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness.corpus.fits import (
    Fit,
    from_files,
    in_parts,
    one_tree_more,
    twice,
    weighted,
    weighted_by_fractions,
    with_eval_set,
    with_three_leaves,
)
from benchmarks.harness.corpus.layers import LAYERS
from benchmarks.harness.corpus.outputs import Outputs, outputs_of
from benchmarks.harness.corpus.tables import (
    binary,
    costs,
    counts,
    groups,
    missing,
    mixed,
    mixed_classes,
    numbers,
    polars,
    sparse_costs,
    three_classes,
    two_outputs,
    wide,
)
from prunus import (
    ArgminForestClassifier,
    ArgminForestRegressor,
    ArgminTreeClassifier,
    ArgminTreeClusterer,
    ArgminTreeRegressor,
    ReadableTreeClassifier,
    ReadableTreeRegressor,
)
from prunus.fitting.training_options import nested

__all__ = ["ENTRIES"]

ONE: dict[str, Any] = {"n_jobs": 1, "random_state": 0}
SMALL: dict[str, Any] = ONE | {"depth": 3, "max_epochs": 12}
FOREST: dict[str, Any] = ONE | {"n_trees": 3, "max_epochs": 6}
OF_EACH: dict[str, Any] = FOREST | {"depth": 3, "leaf": "linear", "pieces": 0}


def regressor(**options: Any) -> Any:
    """A small tree for numbers."""
    return ArgminTreeRegressor().set_params(**nested(SMALL | options))


def classifier(**options: Any) -> Any:
    """A small tree for classes."""
    return ArgminTreeClassifier().set_params(**nested(SMALL | options))


def clusterer(**options: Any) -> Any:
    """A small tree for clusters."""
    return ArgminTreeClusterer().set_params(**nested(ONE | {"depth": 4} | options))


def own_loss(output: Tensor, target: Tensor) -> Tensor:
    """A loss as a user writes it."""
    return (output - target).abs().pow(1.5).sum(1)


def own_split(inputs: int, depth: int) -> nn.Module:
    """A split as a user writes it."""
    return nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, 2**depth - 1))


SOFT = {
    "soft-constant": Fit(regressor(), numbers),
    "soft-constant-two-outputs": Fit(regressor(), two_outputs),
    "soft-constant-binary": Fit(classifier(), binary),
    "soft-linear": Fit(regressor(leaf="linear"), numbers),
    "soft-linear-two-outputs": Fit(regressor(leaf="linear"), two_outputs),
    "soft-linear-three-classes": Fit(classifier(leaf="linear"), three_classes),
    "soft-linear-pieces": Fit(regressor(leaf="linear", pieces=6), numbers),
    "soft-constant-pieces": Fit(regressor(pieces=6), numbers),
    "soft-additive-pieces": Fit(regressor(leaf="additive", pieces=6), numbers),
    "soft-additive-three-classes": Fit(classifier(leaf="additive", pieces=6), three_classes),
    "soft-mlp": Fit(regressor(leaf="mlp", hidden_layer_sizes=(16, 8)), numbers),
    "soft-mlp-dropout": Fit(classifier(leaf="mlp", hidden_layer_sizes=(16, 8), dropout=0.2), three_classes),
    "soft-one-logit": Fit(classifier(leaf="linear", loss="binary_cross_entropy"), binary),
    "soft-poisson": Fit(regressor(leaf="linear", loss="poisson"), counts),
    "soft-gamma": Fit(regressor(leaf="additive", loss="gamma"), costs),
    "soft-tweedie": Fit(regressor(loss="tweedie", tweedie_power=1.3), sparse_costs),
    "soft-quantile": Fit(regressor(leaf="linear", loss="quantile", quantile=0.9), numbers),
    "soft-absolute-error": Fit(regressor(loss="absolute_error"), numbers),
    "soft-huber": Fit(regressor(leaf="additive", loss="huber"), numbers),
    "soft-own-loss": Fit(regressor(loss=own_loss, optimizer=torch.optim.NAdam), numbers),
    "soft-own-split": Fit(regressor(split=own_split), numbers),
    "soft-balanced": Fit(classifier(class_weight="balanced"), three_classes),
    "soft-class-weight": Fit(classifier(class_weight={"low": 3.0, "middle": 1.0, "high": 0.5}), three_classes),
    "soft-pruned": Fit(regressor(pruning_strength=20.0, depth=4), numbers),
    "soft-few-leaves": Fit(regressor(max_leaf_nodes=4), numbers),
    "soft-few-columns": Fit(regressor(max_split_features=2, leaf="linear", depth=5), numbers),
    "soft-depth-0": Fit(classifier(depth=0, leaf="linear"), binary),
    "soft-elu": Fit(regressor(split="elu", leaf="linear"), numbers),
    "soft-mlp-split": Fit(classifier(split="mlp", leaf="additive"), binary),
    "soft-sparse-mlp-split": Fit(classifier(split="sparse_mlp"), three_classes),
    "soft-sparse-mlp-split-mlp": Fit(regressor(split="sparse_mlp", leaf="mlp", hidden_layer_sizes=(16,)), numbers),
    "soft-qhadam-plateau": Fit(regressor(optimizer="qhadam", schedule="plateau", leaf="linear"), numbers),
    "soft-sgd-constant": Fit(regressor(optimizer="sgd", schedule="constant", learning_rate=0.05), numbers),
    "soft-batches": Fit(regressor(batch_size=37, weight_decay=0.01, learning_rate=0.02), numbers),
    "soft-mixed": Fit(regressor(leaf="linear"), mixed),
    "soft-mixed-pieces": Fit(regressor(leaf="additive", pieces=6), mixed),
    "soft-mixed-classes": Fit(classifier(), mixed_classes),
    "soft-polars": Fit(regressor(), polars),
    "soft-missing": Fit(regressor(leaf="additive"), missing),
    "soft-weights": Fit(regressor(leaf="linear"), numbers, weighted),
    "soft-eval-set": Fit(classifier(leaf="linear", early_stopping_rounds=2, max_epochs=40), binary, with_eval_set),
    "soft-early-stopping": Fit(regressor(early_stopping_rounds=3, max_epochs=60, leaf="linear"), partial(numbers, 400)),
    "soft-early-stopping-network": Fit(
        classifier(leaf="mlp", hidden_layer_sizes=(8,), dropout=0.1, early_stopping_rounds=2), partial(binary, 400)
    ),
    "soft-defaults": Fit(ArgminTreeClassifier(**ONE), binary),
    "soft-warm-start": Fit(regressor(warm_start=True), numbers, twice),
    "soft-partial-fit": Fit(regressor(leaf="linear"), mixed, in_parts),
    "soft-partial-fit-classes": Fit(classifier(leaf="linear"), three_classes, in_parts),
    "soft-wide": Fit(regressor(leaf="linear"), wide),
    "soft-auto": Fit(regressor(leaf="auto", depth="auto", pieces="auto", max_epochs=4), numbers),
    "soft-auto-leaf": Fit(classifier(leaf="auto", max_epochs=4), three_classes),
    "soft-two-threads": Fit(regressor(leaf="linear", n_jobs=2), partial(numbers, 1_000)),
}
"""Trees of all routes."""

HARD = {
    "hard-constant": Fit(regressor(routing="hard"), numbers),
    "hard-constant-three-classes": Fit(classifier(routing="hard"), three_classes),
    "hard-linear": Fit(regressor(routing="hard", leaf="linear"), numbers),
    "hard-linear-two-outputs": Fit(regressor(routing="hard", leaf="linear"), two_outputs),
    "hard-linear-binary": Fit(classifier(routing="hard", leaf="linear"), binary),
    "hard-additive-pieces": Fit(regressor(routing="hard", leaf="additive", pieces=6), numbers),
    "hard-additive-classes": Fit(classifier(routing="hard", leaf="additive", pieces=6), three_classes),
    "hard-one-logit": Fit(classifier(routing="hard", loss="binary_cross_entropy"), binary),
    "hard-poisson": Fit(regressor(routing="hard", leaf="linear", loss="poisson"), counts),
    "hard-quantile": Fit(regressor(routing="hard", loss="quantile", quantile=0.1), numbers),
    "hard-single-columns": Fit(regressor(routing="hard", max_split_features=1, depth=4), numbers),
    "hard-two-columns": Fit(classifier(routing="hard", max_split_features=2, depth=4), three_classes),
    "hard-two-columns-linear": Fit(regressor(routing="hard", max_split_features=2, leaf="linear", depth=5), numbers),
    "hard-three-columns": Fit(regressor(routing="hard", max_split_features=3), numbers),
    "hard-few-leaves": Fit(regressor(routing="hard", max_leaf_nodes=4, leaf="linear"), numbers),
    "hard-few-leaves-single": Fit(classifier(routing="hard", max_leaf_nodes=5, max_split_features=1), binary),
    "hard-short-formulas": Fit(regressor(routing="hard", leaf="linear", max_leaf_features=2), mixed),
    "hard-short-formulas-classes": Fit(classifier(routing="hard", leaf="linear", max_leaf_features=2), three_classes),
    "hard-mixed-single": Fit(regressor(routing="hard", max_split_features=1, depth=4), mixed),
    "hard-mixed-linear": Fit(classifier(routing="hard", leaf="linear", class_weight="balanced"), mixed_classes),
    "hard-missing": Fit(regressor(routing="hard", max_split_features=2), missing),
    "hard-weights": Fit(regressor(routing="hard", leaf="linear"), numbers, weighted),
    "hard-weights-searched": Fit(regressor(routing="hard", max_split_features=1), numbers, weighted),
    "hard-early-stopping": Fit(regressor(routing="hard", early_stopping_rounds=3), partial(numbers, 400)),
    "hard-warm-start": Fit(regressor(routing="hard", leaf="linear", warm_start=True), mixed, twice),
    "hard-auto": Fit(classifier(routing="hard", leaf="auto", depth="auto", pieces="auto", max_epochs=4), binary),
    "hard-two-threads": Fit(classifier(routing="hard", max_split_features=2, n_jobs=2), partial(binary, 1_000)),
}
"""Trees of one route."""

READABLE = {
    "readable-defaults": Fit(ReadableTreeRegressor(**ONE), numbers),
    "readable-three-classes": Fit(ReadableTreeClassifier(**ONE), three_classes),
    "readable-single-columns": Fit(ReadableTreeRegressor(**ONE, max_split_features=1), numbers),
    "readable-formulas": Fit(ReadableTreeRegressor(**ONE, max_leaf_features=3, max_leaf_nodes=4), numbers),
    "readable-formulas-binary": Fit(ReadableTreeClassifier(**ONE, max_leaf_features=3, max_leaf_nodes=4), binary),
    "readable-formulas-mixed": Fit(
        ReadableTreeClassifier(**ONE, max_leaf_features=2, max_leaf_nodes=4, max_split_features=1), mixed_classes
    ),
    "readable-three-columns": Fit(ReadableTreeRegressor(**ONE, max_split_features=3, max_leaf_nodes=5), numbers),
    "readable-auto-size": Fit(ReadableTreeClassifier(**ONE, max_leaf_nodes="auto"), binary),
    "readable-with-leaves": Fit(ReadableTreeRegressor(**ONE), numbers, with_three_leaves),
    "readable-two-outputs": Fit(ReadableTreeRegressor(**ONE, max_leaf_nodes=5), two_outputs),
    "readable-mixed": Fit(ReadableTreeRegressor(**ONE), mixed),
    "readable-mixed-single": Fit(ReadableTreeClassifier(**ONE, max_split_features=1), mixed_classes),
    "readable-missing": Fit(ReadableTreeRegressor(**ONE), missing),
    "readable-weights": Fit(ReadableTreeRegressor(**ONE, max_leaf_nodes=5), numbers, weighted),
    "readable-fractions": Fit(ReadableTreeClassifier(**ONE, max_leaf_nodes=5), binary, weighted_by_fractions),
    "readable-balanced": Fit(
        ReadableTreeClassifier(**ONE, class_weight="balanced", min_samples_leaf=10, max_leaf_nodes=5), three_classes
    ),
    "readable-two-threads": Fit(ReadableTreeRegressor(n_jobs=2, random_state=0), partial(numbers, 500)),
}

OTHERS = {
    "files-parquet": Fit(regressor(leaf="linear"), mixed, from_files(".parquet")),
    "files-csv": Fit(classifier(), mixed_classes, from_files(".csv")),
    "files-streamed": Fit(
        regressor(leaf="linear", max_epochs=3), partial(mixed, 5_000), from_files(".parquet", memory_limit=8e5)
    ),
    "files-streamed-csv": Fit(
        regressor(routing="hard", max_epochs=3), partial(mixed, 5_000), from_files(".csv", memory_limit=8e5)
    ),
    "files-readable": Fit(ReadableTreeRegressor(**ONE, max_leaf_nodes=4), mixed, from_files(".feather")),
    "files-clusters": Fit(clusterer(), mixed, from_files(".parquet", clusters=True)),
    "files-forest-streamed": Fit(
        ArgminForestRegressor(**OF_EACH), partial(mixed, 5_000), from_files(".parquet", memory_limit=8e5)
    ),
    "forest": Fit(ArgminForestRegressor(**OF_EACH), numbers),
    "forest-classes": Fit(ArgminForestClassifier(**OF_EACH), three_classes),
    "forest-mixed": Fit(ArgminForestClassifier(**(OF_EACH | {"leaf": "constant"})), mixed_classes),
    "forest-bootstrap": Fit(
        ArgminForestRegressor(**OF_EACH, bootstrap=True, max_features=0.6, oob_score=True), numbers, weighted
    ),
    "forest-bootstrap-classes": Fit(ArgminForestClassifier(**OF_EACH, bootstrap=True, oob_score=True), binary),
    "forest-quantile": Fit(ArgminForestRegressor(**OF_EACH, loss="quantile", quantile=0.8), numbers),
    "forest-hard": Fit(ArgminForestRegressor(**OF_EACH, routing="hard", max_leaf_features=2), two_outputs),
    "forest-hard-single": Fit(
        ArgminForestClassifier(**(OF_EACH | {"leaf": "constant"}), routing="hard", max_split_features=1), binary
    ),
    "forest-auto": Fit(ArgminForestRegressor(**FOREST), numbers),
    "forest-warm-start": Fit(ArgminForestRegressor(**OF_EACH, warm_start=True), numbers, one_tree_more),
    "forest-two-threads": Fit(ArgminForestClassifier(**(OF_EACH | {"n_jobs": 2})), partial(binary, 400)),
    "clusters": Fit(clusterer(), groups),
    "clusters-flat": Fit(clusterer(n_clusters=4), groups),
    "clusters-single-columns": Fit(clusterer(max_split_features=1, n_clusters=4), groups),
    "clusters-two-columns": Fit(clusterer(max_split_features=2, max_leaf_nodes=6), mixed),
    "clusters-targets": Fit(clusterer(depth=3, targets=[0, 2], max_epochs=12), numbers),
    "clusters-mixed": Fit(clusterer(n_clusters=5, routing="hard"), mixed),
    "clusters-mlp-split": Fit(clusterer(depth=3, split="mlp", max_epochs=12), groups),
    "clusters-weights": Fit(clusterer(max_leaf_nodes=6), groups, weighted),
}
"""Tables in files, forests and clusters."""


def _outputs(folder: Path, *, fit: Fit) -> Outputs:
    return outputs_of(fit(folder), folder)


ENTRIES: dict[str, Callable[[Path], Outputs]] = {
    name: partial(_outputs, fit=fit) for name, fit in (SOFT | HARD | READABLE | OTHERS).items()
} | LAYERS
"""Functions, by the names of the entries, that return all outputs; the folder is for files on the way."""
