"""The base class of the forests: their options, and the steps of a fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from numbers import Integral, Real
from threading import Event
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils._param_validation import Interval

from prunus.data import TableEncoder
from prunus.errors import InputValueError
from prunus.estimators.bags import Bags
from prunus.estimators.base import ArgminTree
from prunus.estimators.choosing import tree_kinds
from prunus.estimators.choosing_tree import check_tuning_seconds
from prunus.estimators.defaults import Recipe
from prunus.estimators.devices import choose_device
from prunus.estimators.fitted_forest import FittedForest
from prunus.estimators.format import OF_FILES
from prunus.estimators.hardened import checkpoint_files, forest_checkpoints
from prunus.estimators.notebook import NotebookPicture
from prunus.estimators.options import AUTO, Auto, TreeOptions
from prunus.estimators.out_of_bag import OutOfBag
from prunus.estimators.preparation import (
    Rows,
    to_samples,
    to_training,
)
from prunus.estimators.scanned import ScannedTable
from prunus.estimators.scikit_learn import BaseEstimator
from prunus.estimators.streamed_fit import Given, draw_rows, open_files, read_scanned
from prunus.estimators.torch_state import plain_torch
from prunus.training import EpochRecord, ProgressBar
from prunus.training.epochs import Epochs
from prunus.training.gpu.together import together
from prunus.training.many import in_threads, n_threads
from prunus.training.processes import processes
from prunus.tree.importances import without_columns

__all__ = ["ArgminForest"]

OF_FORESTS = ("n_trees", "bootstrap", "max_features", "oob_score")
"""The options of a forest that its trees do not have."""
OF_EACH = ("n_jobs", "random_state", "warm_start", "checkpoint", "verbose")
"""The options that trees of a forest have with values of their own."""
OF_TREES = ("callbacks",)
"""The options of a tree that a forest does not have: several trees are trained at once."""


class _Lesson(NamedTuple):
    """What all trees learn from."""

    bags: Bags
    rows: Rows
    valid: Rows | None
    """Validation rows of all trees; None if each tree has its own, or none."""
    target: Any
    encoder: TableEncoder
    kinds: list[dict[str, Any]]
    """Options of trees; trees take turns in having them."""
    recipes: list[Recipe]
    """How trees with these options are trained."""
    device: torch.device
    draw: Callable[[int], Rows] | None = None
    """Reads the rows of the tree of a number from files; None if all rows are in memory."""


@dataclass(kw_only=True, repr=False, eq=False)
class ForestOptions:
    """How trees of a forest differ from each other."""

    n_trees: int = 16
    bootstrap: bool = False
    max_features: float = 1.0
    oob_score: bool = False


@dataclass(kw_only=True, repr=False, eq=False)
class ArgminForest(OutOfBag, FittedForest, NotebookPicture, TreeOptions, ForestOptions, BaseEstimator):
    """Several trees, each with a seed, rows and columns of its own, whose predictions are averaged."""

    depth: int | Auto = AUTO
    leaf: str = AUTO
    pieces: int | Auto = AUTO
    tuning_seconds: float | None = None

    _tree_kind: ClassVar[type[Any]]
    _seed: int = field(init=False)
    chosen_: dict[str, Any] = field(init=False)
    keeps_checkpoint: bool = field(init=False, default=False)
    """Whether checkpoints outlive `fit`: the command line removes them only after the model has been saved."""
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "bootstrap": ["boolean"],
        "max_features": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="right")],
        "oob_score": ["boolean"],
    }

    def _new_tree(self, **options: Any) -> Any:
        """A tree of the forest that is not fitted yet, with the options of the forest and these."""
        common = set(self.get_params(deep=False)) - {*OF_FORESTS, *OF_EACH}
        return self._tree_kind(**({name: getattr(self, name) for name in common} | options))

    @plain_torch()
    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any) -> Self:  # noqa: N803
        """Fit in numbered steps. The forest does not change before the end, so that a fit that fails leaves it."""
        X, y, sample_weight, eval_set = open_files(self, Given(X, y, sample_weight, eval_set))  # noqa: N806
        if self.oob_score and isinstance(X, ScannedTable):
            raise InputValueError("oob_score must be False for a table in files beyond memory, got True")
        # 1. Options that are "auto" are chosen. The table and the targets become arrays, once for all trees.
        before = self if self.__sklearn_is_fitted__() and self.warm_start else None
        chosen = self._choose(X, y, sample_weight, eval_set, before)
        kinds = [{}] if chosen is None else tree_kinds(chosen)
        any_tree = self._new_tree(random_state=self.random_state, checkpoint=self.checkpoint, **kinds[0])
        any_tree._check_options()
        any_tree.pieces = max(kind.get("pieces", any_tree.pieces) for kind in kinds)
        encoder, target, rows, draw = self._read(any_tree, X, y, sample_weight, before)
        # 2. Each tree gets a seed, rows and columns of its own. In a warm start, those of earlier trees stay.
        seed = any_tree._seed() if before is None else before._seed
        bags = self._bags(rows, target, encoder, seed, kinds[0], has_eval_set=eval_set is not None)
        earlier = [] if before is None else before.estimators_
        self._check_counts(bags, len(earlier))
        # 3. The trees are trained side by side.
        valid = None if eval_set is None else any_tree._read_eval_set(eval_set, target, encoder, type(self).__name__)
        recipes = [self._new_tree(**kind)._recipe(len(rows), target, None) for kind in kinds]
        device = choose_device(self.device, len(rows), network=any_tree._has_network)
        lesson = _Lesson(bags, rows, valid, target, encoder, kinds, recipes, device, draw)
        trees = [*earlier, *self._train(range(len(earlier), self.n_trees), lesson)]
        # 4. What was learned is kept, and nothing of an earlier fit that this one does not continue.
        kept = OF_FILES if before is not None else ()
        for name in [name for name in vars(self) if name.endswith("_") and name not in kept]:
            delattr(self, name)
        self._set_learned(encoder, target, trees, seed)
        if chosen is not None:
            self.chosen_ = chosen
        self._remove_checkpoints()
        if self.oob_score:
            self._score_out_of_bag(X, y, sample_weight)
        return self

    def _read(
        self,
        tree: Any,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any,
        before: "ArgminForest | None",
    ) -> tuple[TableEncoder, Any, Rows, Callable[[int], Rows] | None]:
        """The encoder, the target and the rows.

        Of a table beyond memory, each tree has rows of its own, which a function draws; those here are of no tree.
        """
        make_target = partial(_target_of, tree)
        if not isinstance(X, ScannedTable):
            return *tree._read(X, y, sample_weight, make_target, before), None
        encoder, target, weighing = read_scanned(X, tree.pieces, make_target, before)
        seed = tree._seed() if before is None else before._seed
        at_once = min(n_threads(self.n_jobs) or torch.get_num_threads(), self.n_trees)
        draw = partial(draw_rows, X.table, encoder, target, weighing, seed, at_once)
        return encoder, target, draw(-1), draw

    def _remove_checkpoints(self) -> None:
        """Remove the checkpoints of a run that is over, so that another fit does not resume it."""
        if self.checkpoint is not None and not self.keeps_checkpoint:
            for checkpoint in forest_checkpoints(self.checkpoint, self.n_trees):
                for path in checkpoint_files(checkpoint):
                    path.unlink(missing_ok=True)

    def _set_learned(self, encoder: TableEncoder, target: Any, trees: list[Any], seed: int) -> None:
        self.encoder_, self.target_, self.estimators_, self._seed = encoder, target, trees, seed
        self.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_

    def _choose(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        before: "ArgminForest | None",
    ) -> dict[str, Any] | None:
        """What is best for options that are "auto"; None if none are. A warm start keeps what was chosen."""
        tree = self._new_tree(random_state=self.random_state, checkpoint=self.checkpoint, n_jobs=self.n_jobs)
        if not tree._chooses:
            check_tuning_seconds(self.tuning_seconds)
            return None
        if before is not None:
            return before.chosen_
        chosen: dict[str, Any] = tree._choose(X, y, sample_weight, eval_set, partial(_target_of, tree))
        return chosen

    def _bags(
        self,
        rows: Rows,
        target: Any,
        encoder: TableEncoder,
        seed: int,
        kind: dict[str, Any],
        *,
        has_eval_set: bool = False,
    ) -> Bags:
        """What each tree sees of these rows."""
        stops_early = self._new_tree(**kind)._recipe(len(rows), target, None).early_stopping_rounds is not None
        return Bags(
            rows.y,
            encoder.n_features_in_,
            seed,
            held_out=self.validation_fraction if stops_early and not has_eval_set and len(rows) >= 5 else None,
            bootstrap=self.bootstrap,
            max_features=self.max_features,
        )

    def _check_counts(self, bags: Bags, earlier: int) -> None:
        if self.n_trees < earlier:
            raise InputValueError(
                f"n_trees must be at least {earlier}, the number of trees of the last fit, to continue it, got "
                f"{self.n_trees}. Raise it, or start again with warm_start=False"
            )
        if self.oob_score and not bags.leaves_rows_out:
            raise InputValueError(
                "oob_score must be False if every tree trains on all rows, which is so with an eval_set, with "
                "early_stopping_rounds=None and with fewer than 300 rows, got True. Use bootstrap=True"
            )

    def _train(self, numbers: range, lesson: _Lesson) -> list[ArgminTree]:
        """The trees with these numbers; in a group of processes, each trains some of them."""
        group = processes()
        trees = group.share_out(numbers, partial(self._train_some, lesson=lesson, shows=group.is_first))
        for tree in trees:  # those of other processes have copies
            tree.encoder_, tree.target_ = lesson.encoder, lesson.target
        return trees

    def _train_some(self, numbers: Sequence[int], lesson: _Lesson, *, shows: bool) -> list[ArgminTree]:
        """The trees with these numbers, each trained by one thread if there are as many trees as threads.

        Outside of the engines each thread computes alone, so that results do not depend on the number of threads. On a
        GPU trees take their epochs together, and all else is done for one tree after the other.
        """
        threads = n_threads(self.n_jobs) or torch.get_num_threads()
        is_cpu = lesson.device.type == "cpu"
        own = max(1, threads // max(1, len(numbers))) if is_cpu else threads
        done = count(1)
        with ProgressBar(len(numbers), shown=bool(self.verbose) and shows, title="training trees") as bar:

            def epochs(k: int, interrupted: Event) -> Epochs[ArgminTree]:
                tree = yield from self._fit_tree(lesson, k, own, interrupted)
                bar.on_epoch_end({"epoch": next(done)})
                return tree

            of_torch, one_thread = torch.get_num_threads(), partial(torch.set_num_threads, 1)
            tasks = [partial(epochs, k) for k in numbers]
            try:
                if is_cpu:
                    return in_threads(tasks, threads, one_thread)
                one_thread()
                return together([task(Event()) for task in tasks], lesson.device, lesson.rows.x.nbytes)
            finally:
                torch.set_num_threads(of_torch)

    def _fit_tree(self, lesson: _Lesson, k: int, threads: int, interrupted: Event) -> Epochs[ArgminTree]:
        """Tree number k, trained by this many threads."""
        bags, rows, valid, target, encoder, kinds, recipes, device, draw = lesson
        if draw is not None:
            rows = draw(k)
            bags = replace(bags, y=rows.y)
        bag, kind, recipe = bags.of(k), kinds[k % len(kinds)], recipes[k % len(kinds)]
        left_out = ~np.isin([column.feature for column in encoder.columns_], bag.features)
        if kind.get("pieces") == 0:
            left_out |= np.array([column.piece for column in encoder.columns_])
        of_run = {"n_jobs": threads, "callbacks": [partial(_stop_if, interrupted)]}
        if self.checkpoint is not None:
            of_run["checkpoint"] = forest_checkpoints(self.checkpoint, k + 1)[k]
        tree: ArgminTree = self._new_tree(random_state=bag.seed, **kind, **of_run)
        tree.keeps_checkpoint = True  # until all trees have been trained
        if valid is None and bag.valid is not None:
            valid = rows[bag.valid]
        train = to_training(_without(bag.of(rows), left_out), target, device, seed=bag.seed)
        held_out = None if valid is None else to_samples(_without(valid, left_out), target, device)
        del rows, valid, bags, bag  # memory: on a GPU, trees that wait for each other have their own rows there
        # A hard tree does not learn from its validation rows either: other trees do, and these rows are out of its bag.
        yield from tree._learn(train, held_out, target, encoder, recipe, tree._seed(), owns_valid=False)
        tree.set_params(n_jobs=None, callbacks=None, checkpoint=None)
        del tree.keeps_checkpoint
        if left_out.any():
            tree.tree_ = without_columns(tree.tree_, left_out)
        return tree

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _target_of(tree: Any, _encoder: TableEncoder, y: Any) -> Any:
    return tree._make_target(y)


def _stop_if(interrupted: Event, _record: EpochRecord) -> None:
    """End the training of a tree after Ctrl-C; its last checkpoint stays."""
    if interrupted.is_set():
        raise KeyboardInterrupt


def _without(rows: Rows, left_out: npt.NDArray[np.bool_]) -> Rows:
    """The rows with zeros in the columns that are left out, which models take as columns that do not vary."""
    return replace(rows, x=np.where(left_out, np.float32(0), rows.x)) if left_out.any() else rows
