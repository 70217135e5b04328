"""The second step of a fit: the model of each run is built, started and trained by gradient descent."""

import copy
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from prunus.fitting.building import build_model, check_built_for, start_model
from prunus.fitting.cluster_start import start_clustered, start_without_targets
from prunus.fitting.options import FitOptions, layer_sizes
from prunus.fitting.recipe import Recipe
from prunus.fitting.rows import Rows
from prunus.fitting.run import Run
from prunus.fitting.screening import noise_columns, without_inputs
from prunus.nn import TreeModel
from prunus.nn.draws import LocalRNG
from prunus.nn.registry import has_planes
from prunus.targets import Target
from prunus.training import History, ProgressBar, Samples, Trainer, TrainerOptions, as_callbacks
from prunus.training.gpu.host_samples import on_device
from prunus.training.gpu.together import train_together
from prunus.training.many import n_threads
from prunus.training.masses import refresh_masses
from prunus.training.processes import processes
from prunus.training.samples import TrainingSamples
from prunus.training.trainer import TrainingRun

__all__ = ["Trained", "complete_runs", "to_samples", "train"]


@dataclass(frozen=True)
class Trained:
    """A run and its trained model, with the samples that the tree is read from."""

    run: Run
    model: TreeModel
    train: TrainingSamples
    valid: Samples | None
    left_out: npt.NDArray[np.bool_] | None
    """Inputs that were left out since their columns are uninformative, (d,); None if none are."""
    history: History


def train(runs: Sequence[Run]) -> list[Trained]:
    """Train the models of runs: one by itself, several together on the GPU that they share."""
    begun = [_begin(run) for run in runs]
    if runs[0].options.is_searched:
        return begun
    with ExitStack() as stack:
        histories = complete_runs([_training(one, stack) for one in begun])
    return [replace(one, history=history) for one, history in zip(begun, histories, strict=True)]


def complete_runs(starts: Sequence[partial[TrainingRun]]) -> list[History]:
    """Take all epochs of one run, or of several together."""
    if len(starts) == 1:
        return [starts[0]().complete()]
    return [run.history for run in train_together(starts)]


def to_samples(rows: Rows, target: Target, device: torch.device, *, seed: int) -> TrainingSamples:
    """Tensors of the rows, with weights that are 1 on average; a stream if they are too many for the device."""
    weight = None
    if rows.weight is not None:
        weight = torch.from_numpy((rows.weight / rows.weight.mean()).astype(np.float32))
    return on_device(Samples(torch.from_numpy(rows.x), target.for_loss(rows.y), weight), device, seed=seed)


def _begin(run: Run) -> Trained:
    """The run with its samples on the device, and a model that is not trained yet."""
    rows, held_out, reader = run.load()
    left_out = None
    if run.before is None and reader is None:
        left_out = noise_columns(rows, run.target, run.encoder)
    if left_out is not None:
        rows = without_inputs(rows, left_out)
        held_out = held_out and without_inputs(held_out, left_out)
    train = to_samples(rows, run.target, run.device, seed=run.seed if reader is None else 0)
    if reader is not None:
        train = reader.stream(train.in_memory)
    valid = None if held_out is None else to_samples(held_out, run.target, run.device, seed=0).in_memory
    model = _new_model(run, train.in_memory) if run.before is None else _copy_model(run.options, run.before.model)
    history: History = {"epoch": [], "train_loss": [], "learning_rate": [], "active_nodes": [], "seconds": []}
    return Trained(run, model.to(run.device), train, valid, left_out, history)


def _training(begun: Trained, stack: ExitStack) -> partial[TrainingRun]:
    """Begins the training of a model, with a progress bar if it is wanted."""
    run, options = begun.run, begun.run.options
    training = TrainerOptions(
        **run.recipe.training(),
        optimizer=options.optimizer,
        schedule=options.schedule,
        seed=run.seed,
        threads=n_threads(options.n_jobs),
        checkpoint=None if options.checkpoint is None else Path(options.checkpoint),
    )
    shown = bool(options.verbose) and processes().is_first
    bar = stack.enter_context(ProgressBar(training.max_epochs, shown=shown))
    callbacks = [bar, *as_callbacks(options.callbacks)]
    trainer = Trainer(begun.model, options.find_loss(), training, callbacks=callbacks, refresh_masses=refresh_masses)
    return partial(trainer.start, begun.train, begun.valid, resume=training.checkpoint is not None)


def _new_model(run: Run, train: Samples) -> TreeModel:
    options, encoder, target, recipe = run.options, run.encoder, run.target, run.recipe
    generator = torch.Generator().manual_seed(run.seed)
    with LocalRNG(run.seed):
        model = build_model(
            train.x.shape[1],
            target.n_outputs,
            depth=options.trained_depth,
            pruning_strength=options.pruning_strength,
            batch_size=min(recipe.batch_size, len(train)),
            split=options.split,
            max_columns=None if options.hardens else options.max_split_features,
            owner=[column.feature for column in encoder.columns_],
            is_piece=[column.piece for column in encoder.columns_],
            leaf=options.trained_leaf,
            hidden=layer_sizes(options.hidden_layer_sizes),
            dropout=float(options.dropout),
        ).to(train.x.device)
    _start(model, train, options, target, recipe, generator)
    return model


def _start(
    model: TreeModel, train: Samples, options: FitOptions, target: Any, recipe: Recipe, generator: torch.Generator
) -> None:
    if options.is_clustering and not options.is_searched and target.positions is not None:
        start_without_targets(model, train, target.positions, generator)
    elif options.is_clustering and not options.is_searched and has_planes(model.tree.split):
        start_clustered(model, train, int(generator.initial_seed()))
    else:
        # Classifiers and hard trees start at random: on some tables they were worse after another start.
        bends = not target.is_classes and not options.is_clustering and not options.hardens
        power = 0.0 if options.is_searched else recipe.decorrelation
        start_model(model, train, generator, decorrelation=power, bends_at_root=bends)


def _copy_model(options: FitOptions, before: TreeModel) -> TreeModel:
    """A copy of the model of an earlier fit, to continue its training."""
    check_built_for(
        before,
        depth=options.trained_depth,
        split=options.split,
        leaf=options.trained_leaf,
        hidden=layer_sizes(options.hidden_layer_sizes),
        dropout=float(options.dropout),
    )
    model = copy.deepcopy(before)
    model.tree.pruning_strength = float(options.pruning_strength)
    return model
