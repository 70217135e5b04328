"""The part of an estimator that builds its model from the options, and starts it."""

import copy
from typing import Any

import numpy as np
import torch

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.estimators.building import build_model, check_built_for, start_model
from prunus.estimators.defaults import Recipe
from prunus.estimators.hardened import HardenedTree
from prunus.nn import TreeModel
from prunus.nn.draws import LocalRNG
from prunus.nn.registry import has_network
from prunus.targets import Target
from prunus.training import Samples

__all__ = ["BuiltTree"]

MAX_UNITS = 65_536
"""Largest number of units in a hidden layer: the weights of two such layers fill 16 GiB."""


class BuiltTree(HardenedTree):
    """A mixin that makes the torch model of an estimator."""

    hidden_layer_sizes: Any
    dropout: float

    def _build(self, train: Samples, target: Target, recipe: Recipe, seed: int, encoder: TableEncoder) -> TreeModel:
        generator = torch.Generator().manual_seed(seed)
        with LocalRNG(seed):
            model = build_model(
                train.x.shape[1],
                target.n_outputs,
                depth=self._trained_depth,
                pruning_strength=self.pruning_strength,
                batch_size=min(recipe.batch_size, len(train)),
                split=self.split,
                max_columns=None if self._hardens else self.max_split_features,
                owner=[column.feature for column in encoder.columns_],
                is_piece=[column.piece for column in encoder.columns_],
                leaf=self._trained_leaf,
                hidden=_check_layer_sizes(self.hidden_layer_sizes),
                dropout=float(self.dropout),
            ).to(train.x.device)
        self._start(model, train, target, recipe, generator)
        return model

    @property
    def _has_network(self) -> bool:
        """Whether the splits or the leaves that are trained have a network."""
        return has_network(self.split, self._trained_leaf)

    def _start(
        self,
        model: TreeModel,
        train: Samples,
        target: Any,
        recipe: Recipe,
        generator: torch.Generator,
    ) -> None:
        # Classifiers and hard trees start at random: on some tables they were worse after another start.
        bends = target.task == "numbers" and not self._hardens
        start_model(model, train, generator, decorrelation=recipe.decorrelation, bends_at_root=bends)

    def _copy_model(self, before: TreeModel) -> TreeModel:
        """A copy of the model of an earlier fit, to continue its training."""
        check_built_for(
            before,
            depth=self._trained_depth,
            split=self.split,
            leaf=self._trained_leaf,
            hidden=_check_layer_sizes(self.hidden_layer_sizes),
            dropout=float(self.dropout),
        )
        model = copy.deepcopy(before)
        model.tree.pruning_strength = float(self.pruning_strength)
        return model


def _check_layer_sizes(sizes: Any) -> tuple[int, ...]:
    listed = [sizes] if getattr(sizes, "ndim", 1) == 0 else list(sizes)
    whole = all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in listed)
    if not whole or not all(1 <= size <= MAX_UNITS for size in listed):
        raise InputValueError(f"hidden_layer_sizes must be integers from 1 to {MAX_UNITS:_}, got {sizes!r}")
    return tuple(int(size) for size in listed)
