"""Options that are "auto": a few candidates are trained for a while, and the best of them are trained longer."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any, NamedTuple

import torch

from prunus.data import TableEncoder
from prunus.errors import InputValueError, TrainingError
from prunus.fitting.bags import Bags
from prunus.fitting.devices import choose_device
from prunus.fitting.finish import finish
from prunus.fitting.options import AUTO, FitOptions
from prunus.fitting.prepare import Data, MakeTarget
from prunus.fitting.recipe import Recipe, default_recipe, find_recipe
from prunus.fitting.rows import Rows, merge_alike
from prunus.fitting.run import Material, Run
from prunus.fitting.screening import narrowed
from prunus.fitting.train import to_samples, train
from prunus.training import EpochRecord
from prunus.training.losses import mean_loss
from prunus.training.many import n_threads, side_by_side
from prunus.training.processes import processes
from prunus.tree.prediction import row_outputs

__all__ = ["CHOSEN", "Candidate", "candidates", "check_tuning_seconds", "choose", "chooses", "tree_kinds"]

CHOSEN = ("leaf", "depth", "pieces")
"""The options that may be "auto"; the weight decay is chosen with them, if it is "auto" as well."""
FEW = 3_000
"""With fewer rows than this candidates are compared by cross-validation: few validation rows would not tell them
apart."""
FOLDS = 4
HELD_OUT = 0.2
"""Share of the rows that candidates are compared on, without cross-validation."""
ROUNDS = ((0.25, 2), (0.5, 1))
"""For each round the share of the epochs for which candidates are trained, and how many of them are kept."""
ALMOST = 1.1
"""A loss that is at most this many times the best one is almost as good. With 4 trees of each kind that is almost as
good, the mean R^2 of 13 sets was 86.5 and the mean accuracy of 10 sets 88.1; with the best kind alone 86.2 and 87.7."""


class Candidate(NamedTuple):
    """Options that compete with others."""

    leaf: str
    depth: int
    pieces: int
    decay: float = 1.0
    """The weight decay, as a multiple of its default."""


SOFT = (
    Candidate("mlp", 2, 0),
    Candidate("mlp", 2, 8, 3.0),
    Candidate("linear", 6, 0, 2.0),
    Candidate("additive", 8, 8, 10.0),
)
"""The candidates of soft trees. Of all sets of four candidates from the table in `benchmarks/accuracy_notes.md`, one
that is good on average and whose members are good on different tables: smooth ones, noisy ones, and those with
thresholds."""
HARD = (Candidate("linear", 6, 0), Candidate("linear", 6, 8), Candidate("additive", 10, 8))
HARD_SINGLE = (Candidate("constant", 12, 0), Candidate("linear", 6, 0), Candidate("additive", 8, 16))
"""Splits of one column need more levels."""
HARD_SHORT = (Candidate("linear", 3, 0), Candidate("linear", 6, 0))
"""Leaves of few columns: linear models alone, without curves."""


def chooses(options: FitOptions) -> bool:
    """Whether some of the options have to be chosen; the leaf of clusters follows from their targets."""
    asked = (getattr(options, name) for name in CHOSEN)
    return not options.is_clustering and any(isinstance(value, str) and value == AUTO for value in asked)


def check_tuning_seconds(tuning_seconds: float | None) -> None:
    """Raise an error if a time for choices is given where nothing is chosen."""
    if tuning_seconds is not None:
        raise InputValueError(
            f"tuning_seconds must be None unless leaf, depth or pieces is 'auto', got {tuning_seconds}"
        )


def candidates(options: FitOptions) -> list[Candidate]:
    """The candidates for a tree whose options may be "auto"; options that are not stay as they are."""
    if options.routing == "hard":
        listed: tuple[Candidate, ...] = HARD_SINGLE if options.max_split_features == 1 else HARD
    else:
        listed = SOFT
    if options.routing == "hard" and options.max_leaf_features is not None:
        listed = HARD_SHORT
    fixed = {name: getattr(options, name) for name in CHOSEN if getattr(options, name) != AUTO}
    if options.weight_decay != AUTO:
        fixed["decay"] = 1.0
    return list(dict.fromkeys(candidate._replace(**fixed) for candidate in listed))


def choose(
    options: FitOptions, source: Data, make_target: MakeTarget, seed: int, seconds: float | None = None
) -> dict[str, Any]:
    """The best candidate for options that are "auto", and how well all of them did.

    Parameters
    ----------
    options : FitOptions
    source : Data
        The rows that candidates learn from; of a table beyond memory it is a sample.
    make_target : callable
    seed : int
        The candidates and their validation rows depend on it.
    seconds : float, optional
        No new candidate starts after this time; the first always runs. By default there is no limit.

    Returns
    -------
    dict
        The options "leaf", "depth", "pieces" and "weight_decay", and "candidates": the options of each candidate with
        its validation loss, the best first.
    """
    left = candidates(options)
    n_pieces = 0 if options.pieces == AUTO else options.pieces
    tables = _read_tables(options, source, make_target, [n_pieces, *(one.pieces for one in left)])
    first = tables[n_pieces]
    n_rows, target = first.n_given, first.target
    replace(options, leaf=left[0].leaf).check()
    end = math.inf if seconds is None else time.monotonic() + seconds
    losses: dict[Candidate, float] = {}
    ranked = left
    for share, kept in ROUNDS if n_rows > 1 or first.valid is not None else ():
        if len(left) == 1 or processes().broadcast(time.monotonic() > end):
            break
        found = _compete(options, left, tables, share, seed, end)
        losses |= found
        left = sorted(found, key=lambda candidate: found[candidate])
        ranked = [*left, *(other for other in ranked if other not in left)]
        left = left[:kept]
    best = ranked[0]
    return _options(options, best, n_rows, target) | {
        "candidates": [
            _options(options, one, n_rows, target) | {"loss": losses.get(one)}
            for one in ranked
            if one in losses or one is best
        ]
    }


class _Table(NamedTuple):
    """What candidates with a certain number of pieces learn from."""

    encoder: TableEncoder
    target: Any
    rows: Rows
    valid: Rows | None
    """The rows of the user's eval_set."""
    n_given: int
    """Number of rows before equal ones were merged."""


def _read_tables(
    options: FitOptions, source: Data, make_target: MakeTarget, pieces: Sequence[int]
) -> dict[int, _Table]:
    """The table in encodings with these numbers of pieces; equal rows are those that are equal in all of them."""
    numbers = [pieces[0], *sorted(set(pieces) - {pieces[0]})]
    read = [source.sample.read(replace(options, pieces=one), make_target, merged=False) for one in numbers]
    merged = merge_alike([one.rows for one in read])
    return {
        number: _Table(one.encoder, one.target, rows, one.valid, len(one.rows))
        for number, one, rows in zip(numbers, read, merged, strict=True)
    }


def tree_kinds(chosen: dict[str, Any]) -> list[dict[str, Any]]:
    """The options of the trees of a forest: the best candidate, and those that are almost as good.

    The mean of different trees is better than that of equal ones. Those that have pieces have the same.

    Examples
    --------
    >>> best = {"leaf": "linear", "depth": 6, "pieces": 0, "weight_decay": 0.6, "loss": 0.5}
    >>> next_one = best | {"leaf": "additive", "loss": 0.51}
    >>> [kind["leaf"] for kind in tree_kinds(best | {"candidates": [best, next_one]})]
    ['linear', 'additive']
    """
    best, *others = chosen["candidates"]
    kinds = [best, *(other for other in others if _is_almost(other["loss"], best["loss"]))]
    found = [{name: kind[name] for name in (*CHOSEN, "weight_decay")} for kind in kinds]
    pieces = next((kind["pieces"] for kind in found if kind["pieces"]), 0)
    return [kind | {"pieces": pieces} if kind["pieces"] else kind for kind in found]


def _is_almost(loss: float | None, best: float | None) -> bool:
    return loss is not None and best is not None and loss <= ALMOST * best


def _options(options: FitOptions, candidate: Candidate, n: int, target: Any) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(candidate, name) for name in CHOSEN}
    found["weight_decay"] = options.weight_decay
    if options.weight_decay == AUTO:
        trained = replace(options, leaf=candidate.leaf).trained_leaf
        default = default_recipe(n, trained, classes=target.is_classes).weight_decay
        found["weight_decay"] = candidate.decay * default
    return found


def _compete(
    options: FitOptions, some: Sequence[Candidate], tables: dict[int, _Table], share: float, seed: int, end: float
) -> dict[Candidate, float]:
    """The validation losses of candidates that are trained for this share of their epochs."""
    any_table = tables[some[0].pieces]
    parts = _parts(any_table, seed)
    on_cpu = choose_device(options.device, len(any_table.rows)).type == "cpu"
    threads = (n_threads(options.n_jobs) or torch.get_num_threads()) if on_cpu else 1
    tasks = [
        partial(_loss, options, candidate, tables[candidate.pieces], part, share, seed, end if i else math.inf)
        for i, candidate in enumerate(some)
        for part in parts
    ]
    before = torch.get_num_threads()
    try:
        found = processes().share_out(
            tasks, partial(side_by_side, threads=threads, initializer=partial(torch.set_num_threads, 1))
        )
    finally:
        torch.set_num_threads(before)
    means = {
        candidate: sum(found[i * len(parts) : (i + 1) * len(parts)]) / len(parts) for i, candidate in enumerate(some)
    }
    finite = {candidate: loss for candidate, loss in means.items() if math.isfinite(loss)}
    return finite or {some[0]: math.inf}


class _Part(NamedTuple):
    """The numbers of the rows to train on and to compare on; None for the first means all rows and the eval_set."""

    train: Any
    valid: Any


def _parts(table: _Table, seed: int) -> list[_Part]:
    """The rows to train on and to compare on: one pair of parts, or several if rows are few."""
    if table.valid is not None:
        return [_Part(None, None)]
    few = len(table.rows) < FEW
    bags = Bags(table.rows.y, 1, seed, held_out=1 / FOLDS if few else HELD_OUT)
    found = [bags.of(k) for k in range(FOLDS if few else 1)]
    return [_Part(bag.train, bag.valid) for bag in found]


def _loss(
    options: FitOptions,
    candidate: Candidate,
    table: _Table,
    part: _Part,
    share: float,
    seed: int,
    end: float,
    interrupted: Event,
) -> float:
    """The validation loss of a candidate that is trained on a part of the rows; infinite if there is no time left."""
    if time.monotonic() > end or interrupted.is_set():
        return math.inf
    rows, valid = (table.rows, table.valid) if part.train is None else (table.rows[part.train], table.rows[part.valid])
    assert valid is not None
    alone = {"n_jobs": 1, "verbose": 0, "checkpoint": None, "callbacks": [partial(_stop_if, interrupted)]}
    chosen = _options(options, candidate, len(rows), table.target)
    options = replace(options, **(chosen | alone))
    device = choose_device(options.device, len(table.rows))
    recipe = _shorter(find_recipe(options, len(rows), table.target), share)
    rows, valid, encoder = narrowed(rows, valid, table.target, table.encoder)
    watched = valid if recipe.early_stopping_rounds is not None else None
    run = Run(options, encoder, table.target, recipe, seed, device, lambda: Material(rows, watched))
    try:
        (fitted,) = finish(train([run]))
    except TrainingError:
        return math.inf
    held_out = to_samples(valid, table.target, device, seed=0).in_memory
    outputs = torch.from_numpy(row_outputs(fitted.tree, held_out.x.numpy(force=True))).to(held_out.x.dtype)
    return float(mean_loss(options.find_loss(), outputs.to(device), held_out.y, held_out.weight))


def _stop_if(interrupted: Event, _record: EpochRecord) -> bool:
    return interrupted.is_set()


def _shorter(recipe: Recipe, share: float) -> Recipe:
    """The same training in fewer epochs."""
    epochs = max(1, math.ceil(share * recipe.max_epochs))
    rounds = recipe.early_stopping_rounds
    return replace(
        recipe, max_epochs=epochs, early_stopping_rounds=None if rounds is None else max(3, math.ceil(share * rounds))
    )
