"""The fit of a forest: trees with seeds, rows and columns of their own, trained side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.errors import InputValueError
from prunus.fitting.bags import Bags
from prunus.fitting.devices import choose_device
from prunus.fitting.finish import finish
from prunus.fitting.options import FitOptions, forest_checkpoints
from prunus.fitting.prepare import LEAST_DIVIDED, Data, MakeTarget, ReadTable
from prunus.fitting.recipe import Recipe, find_recipe
from prunus.fitting.rows import Rows
from prunus.fitting.run import Fitted, Material, Run, draw_seed
from prunus.fitting.screening import without_inputs
from prunus.fitting.train import train
from prunus.training import EpochRecord, ProgressBar
from prunus.training.gpu.together import on_gpu, rounds
from prunus.training.many import n_threads, side_by_side
from prunus.training.processes import alone, processes
from prunus.tree.importances import without_columns

__all__ = ["FittedForest", "ForestOptions", "fit_forest"]


@dataclass(frozen=True, kw_only=True)
class ForestOptions:
    """How trees of a forest differ from each other, see `ArgminForestClassifier`."""

    n_trees: int
    bootstrap: bool
    max_features: float
    oob_score: bool
    has_eval_set: bool


@dataclass(frozen=True)
class FittedForest:
    """What the fit of a forest has learned."""

    table: ReadTable
    trees: list[Fitted]
    """The new trees, after those of an earlier fit that this one continues."""
    kinds: list[dict[str, Any]]
    """The options in which trees differ; they take turns in having them."""
    seed: int
    seeds: list[int]
    """Those of all trees, also of the earlier ones."""
    seen: npt.NDArray[np.uint8] | None
    """Which rows of the table each tree has trained on, (n_trees, n / 8), eight rows in a byte; None if each tree has
    read rows of its own from files."""


def fit_forest(
    options: FitOptions,
    forest: ForestOptions,
    kinds: list[dict[str, Any]],
    source: Data,
    make_target: MakeTarget,
    seed: int,
    *,
    before: Fitted | None = None,
    earlier: int = 0,
) -> FittedForest:
    """Train the trees of a forest after the `earlier` ones, whose encoder and target `before` has.

    Parameters
    ----------
    options : FitOptions
        Those that all trees have.
    forest : ForestOptions
    kinds : list of dict
        Further options; trees take turns in having them.
    source : Data
    make_target : callable
    seed : int
    before : Fitted, optional
    earlier : int
    """
    any_options = replace(options, **kinds[0])
    any_options.check()
    pieces = max(kind.get("pieces", any_options.pieces) for kind in kinds)
    threads = n_threads(options.n_jobs) or torch.get_num_threads()
    table = source.read_for_forest(
        replace(any_options, pieces=pieces), make_target, seed, before=before, at_once=min(threads, forest.n_trees)
    )
    encoder, target, rows = table.encoder, table.target, table.rows
    recipes = [find_recipe(replace(options, **kind), len(rows), target) for kind in kinds]
    holds_out = recipes[0].early_stopping_rounds is not None and not forest.has_eval_set and len(rows) >= LEAST_DIVIDED
    bags = Bags(
        rows.y,
        encoder.n_features_in_,
        seed,
        held_out=options.validation_fraction if holds_out else None,
        bootstrap=forest.bootstrap,
        max_features=forest.max_features,
    )
    _check_counts(forest, bags, earlier)
    device = choose_device(options.device, len(rows), network=any_options.has_network)
    lesson = _Lesson(options, kinds, recipes, table, bags, device)
    group = processes()
    trees = group.share_out(range(earlier, forest.n_trees), partial(lesson.fit, shows=group.is_first))
    # Those of other processes have copies of the encoder and the target.
    trees = [replace(tree, encoder=encoder, target=target) for tree in trees]
    seeds = [bags.of(k).seed for k in range(forest.n_trees)]
    return FittedForest(table, trees, kinds, seed, seeds, _seen(table, bags, forest.n_trees))


def _seen(table: ReadTable, bags: Bags, n_trees: int) -> npt.NDArray[np.uint8] | None:
    """Which rows each tree trains on; of rows without weight it says nothing."""
    if table.draw is not None:
        return None
    trained = np.zeros((n_trees, len(table.rows) + 1), dtype=bool)  # the last column is for rows without weight
    for k in range(n_trees):
        trained[k, bags.train_rows(k)] = True
    return np.packbits(trained[:, table.groups], axis=1)


def is_cpu(device: torch.device) -> bool:
    """Whether each tree is trained by a thread of its own; on other devices they take their epochs together."""
    return device.type == "cpu"


def _check_counts(forest: ForestOptions, bags: Bags, earlier: int) -> None:
    if forest.n_trees < earlier:
        raise InputValueError(
            f"n_trees must be at least {earlier}, the number of trees of the last fit, to continue it, got "
            f"{forest.n_trees}. Raise it, or start again with warm_start=False"
        )
    if forest.oob_score and not bags.leaves_rows_out:
        raise InputValueError(
            "oob_score must be False if every tree trains on all rows, which is so with an eval_set, with "
            "early_stopping_rounds=None and with fewer than 300 rows, got True. Use bootstrap=True"
        )


@dataclass(frozen=True)
class _Lesson:
    """What all trees learn from."""

    options: FitOptions
    kinds: list[dict[str, Any]]
    recipes: list[Recipe]
    """How trees of each kind are trained."""
    table: ReadTable
    bags: Bags
    device: torch.device

    def fit(self, numbers: Sequence[int], *, shows: bool) -> list[Fitted]:
        """The trees with these numbers, each trained by one thread if there are as many trees as threads.

        Outside of the engines each thread computes alone, so that results do not depend on the number of threads. On a
        GPU trees take their epochs together, and all else is done for one tree after the other.
        """
        threads = n_threads(self.options.n_jobs) or torch.get_num_threads()
        at_once = is_cpu(self.device)
        own = max(1, threads // max(1, len(numbers))) if at_once else threads
        done, of_torch, one_thread = count(1), torch.get_num_threads(), partial(torch.set_num_threads, 1)
        with ProgressBar(len(numbers), shown=bool(self.options.verbose) and shows, title="training trees") as bar:

            def fit(some: Sequence[int], interrupted: Event) -> list[Fitted]:
                runs = [self._run(k, own, interrupted) for k in some]
                trees = [_narrow(tree, left_out) for tree, (_, left_out) in zip(
                    finish(train([run for run, _ in runs])), runs, strict=True
                )]  # fmt: skip
                for _ in some:
                    bar.on_epoch_end({"epoch": next(done)})
                return trees

            try:
                if at_once:
                    found = side_by_side([partial(fit, [k]) for k in numbers], threads, one_thread)
                else:
                    one_thread()
                    with alone(), on_gpu(self.device):
                        parts = rounds(numbers, self.device, self.table.rows.x.nbytes)
                        found = [fit(some, Event()) for some in parts]
            finally:
                torch.set_num_threads(of_torch)
        return [tree for some in found for tree in some]

    def _run(self, k: int, threads: int, interrupted: Event) -> tuple[Run, npt.NDArray[np.bool_]]:
        """The run of tree number k by this many threads, and the inputs that the tree does not see."""
        rows, bags = self.table.rows, self.bags
        if self.table.draw is not None:
            rows = self.table.draw(k)
            bags = replace(bags, y=rows.y)
        bag, kind, recipe = bags.of(k), self.kinds[k % len(self.kinds)], self.recipes[k % len(self.kinds)]
        columns = self.table.encoder.columns_
        left_out = ~np.isin([column.feature for column in columns], bag.features)
        if kind.get("pieces") == 0:
            left_out |= np.array([column.piece for column in columns])
        alone = {"n_jobs": threads, "verbose": 0, "callbacks": [partial(_stop_if, interrupted)]}
        if self.options.checkpoint is not None:
            alone["checkpoint"] = forest_checkpoints(self.options.checkpoint, k + 1)[k]

        def load() -> Material:
            valid = self.table.valid if self.table.valid is not None or bag.valid is None else rows[bag.valid]
            held_out: Rows | None = None if valid is None else without_inputs(valid, left_out)
            return Material(without_inputs(bag.of(rows), left_out), held_out)

        options = replace(self.options, **(kind | alone))
        # A hard tree does not learn from its validation rows either: other trees do, and these rows are out of its bag.
        encoder, target = self.table.encoder, self.table.target
        return Run(options, encoder, target, recipe, draw_seed(bag.seed), self.device, load), left_out


def _narrow(tree: Fitted, left_out: npt.NDArray[np.bool_]) -> Fitted:
    """The tree without a trace of the inputs that it did not see."""
    return replace(tree, tree=without_columns(tree.tree, left_out)) if left_out.any() else tree


def _stop_if(interrupted: Event, _record: EpochRecord) -> None:
    """End the training of a tree after Ctrl-C; its last checkpoint stays."""
    if interrupted.is_set():
        raise KeyboardInterrupt
