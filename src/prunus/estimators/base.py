"""The base class of the estimators: their options, and the steps of a fit."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from prunus.data import TableEncoder
from prunus.estimators.callback_support import with_callbacks
from prunus.estimators.choosing_tree import ChoosingTree
from prunus.estimators.defaults import Recipe, default_recipe
from prunus.estimators.devices import choose_device
from prunus.estimators.fitted import FittedTree, check_width, encode
from prunus.estimators.learned import LearnedTree
from prunus.estimators.notebook import NotebookPicture
from prunus.estimators.options import AUTO, TreeOptions
from prunus.estimators.preparation import (
    Rows,
    encode_training,
    fit_encoder,
    hold_out,
    read_eval_set,
    read_rows,
    to_samples,
    to_training,
)
from prunus.estimators.scanned import ScannedTable
from prunus.estimators.scikit_learn import BaseEstimator, CallbackSupportMixin
from prunus.estimators.streamed_fit import MakeTarget, StreamedTree
from prunus.estimators.torch_state import plain_torch
from prunus.targets import Target
from prunus.training.epochs import take_epochs
from prunus.training.processes import processes

__all__ = ["ArgminTree"]


@dataclass(kw_only=True, repr=False, eq=False)
class ArgminTree(
    ChoosingTree,
    StreamedTree,
    LearnedTree,
    FittedTree,
    NotebookPicture,
    CallbackSupportMixin,
    TreeOptions,
    BaseEstimator,
):
    """A single tree learned by gradient descent; each estimator adds what is to be predicted."""

    callbacks: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeOptions._parameter_constraints,
        "callbacks": [None, list, tuple],
    }

    @with_callbacks  # type: ignore[untyped-decorator]
    @plain_torch()
    def _fit_tree(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        make_target: MakeTarget,
        *,
        max_epochs: int | None = None,
    ) -> Self:
        """Fit in numbered steps; `partial_fit` and a warm start continue from the tree of the last fit.

        The estimator does not change before the end, so that a fit that fails leaves it as it was.
        """
        if max_epochs is not None:
            self._validate_params()  # scikit-learn leaves this out in `partial_fit` of an estimator that is fitted
        self._check_options()
        before = self if self.__sklearn_is_fitted__() and (self.warm_start or max_epochs is not None) else None
        if isinstance(X, ScannedTable):
            self._fit_stream(X, eval_set, make_target, before, max_epochs)
            return self
        # 1. The table and the targets become arrays; in small tables, equal rows are merged.
        encoder, target, rows = self._read(X, y, sample_weight, make_target, before, is_new=max_epochs is not None)
        # 2. Some rows are held out for validation, unless the caller gives an eval_set.
        seed = self._seed()
        recipe = self._recipe(len(rows), target, max_epochs)
        train_rows, valid_rows = self._hold_out(rows, eval_set, target, encoder, recipe, seed)
        device = choose_device(self.device, len(rows), network=self._has_network)
        train = to_training(train_rows, target, device, seed=seed)
        valid = to_samples(valid_rows, target, device)
        del rows, train_rows, valid_rows  # memory
        data = {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}
        epochs = self._learn(
            train, valid, target, encoder, recipe, seed, owns_valid=eval_set is None, before=before, data=data
        )
        take_epochs(epochs)
        return self

    def _read(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any,
        make_target: MakeTarget,
        before: "ArgminTree | None",
        *,
        merged: bool = True,
        is_new: bool = False,
    ) -> tuple[TableEncoder, Any, Rows]:
        """The encoder, the target and the rows; to continue an earlier fit, with its encoder and target.

        `is_new` says that the rows are other ones than those of the earlier fit.
        """
        if before is not None:
            target, encoder = make_target(before.encoder_, y).take_over(before.target_), before.encoder_
            x = encode(before, X) if is_new else encode_training(before, X, y, sample_weight, target)
            return encoder, target, read_rows(x, y, sample_weight, target)
        encoder = TableEncoder(pieces=self.pieces, clip=self._clip).fit(X, sample_weight=sample_weight)
        if y is None:
            encoder.drop_calendar()
        target = make_target(encoder, y)
        x = fit_encoder(encoder, X, y, sample_weight, target)
        rows = read_rows(x, y, sample_weight, target, merged=merged)
        return encoder, target.scale(rows.y, rows.weight), rows

    def _seed(self) -> int:
        if self.random_state is None and self.checkpoint is not None:
            return 0  # a run can only be resumed with the seed it began with
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if isinstance(self.random_state, Integral):
            return seed
        return processes().broadcast(seed)  # those of processes that train together may differ

    def _recipe(self, n: int, target: Target, max_epochs: int | None) -> Recipe:
        """The options of training: the user's, and defaults where the user has not set any."""
        chosen = self._default_recipe(n, target, None if self.batch_size == AUTO else int(self.batch_size))
        own = {
            name: getattr(self, name)
            for name in ("max_epochs", "learning_rate", "weight_decay", "early_stopping_rounds")
            if getattr(self, name) != AUTO
        }
        if max_epochs is not None:
            own |= {"max_epochs": max_epochs, "early_stopping_rounds": None}
        return Recipe(**(vars(chosen) | own))

    def _default_recipe(self, n: int, target: Target, batch_size: int | None) -> Recipe:
        return default_recipe(n, self._trained_leaf, batch_size, classes=target.task == "classes")

    def _leaf_name(self) -> str:
        return str(self.leaf)

    def _read_eval_set(self, eval_set: Any, target: Target, encoder: TableEncoder, name: str | None = None) -> Rows:
        """The validation rows that the caller gave to the estimator of this name, by default this one."""

        def encoded(table: Any) -> npt.NDArray[np.float32]:
            check_width(encoder, table, name or type(self).__name__)
            return encoder.transform(table)

        return read_eval_set(eval_set, target, encoded)

    def _hold_out(
        self, rows: Rows, eval_set: Any, target: Target, encoder: TableEncoder, recipe: Recipe, seed: int
    ) -> tuple[Rows, Rows | None]:
        if eval_set is not None:
            return rows, self._read_eval_set(eval_set, target, encoder)
        if recipe.early_stopping_rounds is None or len(rows) < 5:
            return rows, None
        return hold_out(rows, self.validation_fraction, stratify=rows.y.ndim == 1, seed=seed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
