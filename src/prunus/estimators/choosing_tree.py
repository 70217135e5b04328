"""The part of an estimator that chooses options that are "auto" before it fits."""

import copy
from collections.abc import Callable
from typing import Any, Self

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.estimators.choosing import CHOSEN, Lesson, choose
from prunus.estimators.options import AUTO
from prunus.estimators.preparation import Rows
from prunus.estimators.scanned import ScannedTable
from prunus.estimators.streamed_fit import MakeTarget
from prunus.estimators.torch_state import plain_torch

__all__ = ["ChoosingTree", "check_tuning_seconds"]


def check_tuning_seconds(tuning_seconds: float | None) -> None:
    """Raise an error if a time for choices is given where nothing is chosen."""
    if tuning_seconds is not None:
        raise InputValueError(
            f"tuning_seconds must be None unless leaf, depth or pieces is 'auto', got {tuning_seconds}"
        )


class ChoosingTree:
    """A mixin for estimators whose `leaf`, `depth` and `pieces` may be "auto"."""

    warm_start: bool
    pieces: Any
    random_state: Any
    tuning_seconds: float | None = None
    chosen_: dict[str, Any]

    _fit_tree: Callable[..., Any]
    _read: Callable[..., tuple[TableEncoder, Any, Rows]]
    _read_eval_set: Callable[..., Rows]
    _seed: Callable[[], int]
    get_params: Callable[..., dict[str, Any]]
    __sklearn_is_fitted__: Callable[[], bool]

    def _fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        make_target: MakeTarget,
        *,
        max_epochs: int | None = None,
    ) -> Self:
        """Choose the options that are "auto", and fit; a fit that continues another one keeps what that has chosen."""
        if not self._chooses:
            check_tuning_seconds(self.tuning_seconds)
            self._fit_tree(X, y, sample_weight, eval_set, make_target, max_epochs=max_epochs)
            vars(self).pop("chosen_", None)
            return self
        is_continued = self.__sklearn_is_fitted__() and (self.warm_start or max_epochs is not None)
        if is_continued and not hasattr(self, "chosen_"):
            raise InputValueError(
                "leaf, depth and pieces must be the same as in the last fit to continue it, got 'auto' after a fit "
                "with given options. Set them back, or start again with warm_start=False"
            )
        chosen = self.chosen_ if is_continued else self._choose(X, y, sample_weight, eval_set, make_target)
        tree = copy.copy(self)
        for name in (*CHOSEN, "weight_decay"):
            setattr(tree, name, chosen[name])
        tree._fit_tree(X, y, sample_weight, eval_set, make_target, max_epochs=max_epochs)
        options = self.get_params(deep=False)
        learned = {name: value for name, value in vars(tree).items() if name not in options}
        for name in [name for name in vars(self) if name not in options and name not in learned]:
            delattr(self, name)
        vars(self).update(learned | {"chosen_": chosen})
        return self

    @property
    def _chooses(self) -> bool:
        """Whether some of the options have to be chosen."""
        return any(isinstance(getattr(self, name), str) and getattr(self, name) == AUTO for name in CHOSEN)

    @plain_torch()
    def _choose(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        make_target: MakeTarget,
    ) -> dict[str, Any]:
        """The options that are best for these rows, or for a sample of a table beyond memory; see `choose`."""
        if isinstance(X, ScannedTable):
            X, y, sample_weight = X.sample.X, X.sample.y, X.sample.weight  # noqa: N806
        drawn = copy.copy(self)
        drawn.random_state = copy.deepcopy(self.random_state)  # a random state that the user gave does not change
        seed = drawn._seed()

        def lesson_of(pieces: int) -> Lesson:
            reader = copy.copy(self)
            reader.pieces = pieces
            # Equal rows are merged later: which rows are equal may depend on the pieces.
            encoder, target, rows = reader._read(X, y, sample_weight, make_target, None, merged=False)
            valid = None if eval_set is None else self._read_eval_set(eval_set, target, encoder)
            return Lesson(encoder, target, rows, valid)

        return choose(self, lesson_of, seed, self.tuning_seconds)
