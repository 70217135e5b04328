"""The hard tree with a linear model in each node, before its leaves are refitted: how it is built and trained."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from prunus.hardening.distillation import DistillationData
from prunus.nn import TreeLayer, TreeModel, Whiten, spread_splits
from prunus.nn.registry import build_head, build_split
from prunus.targets import Link
from prunus.training import Samples, TrainerOptions
from prunus.training.losses import NamedLoss

__all__ = ["StudentTraining", "build_student", "imitation_loss"]

FINAL_SCALE = 200.0
"""How much larger scores are at the end of training: then less than 1 % of the rows lie in a margin."""
PRUNING = 0.1
"""The share of the pruning strength that a hard tree is trained with: at the end its masses are to be 1."""
START_SAMPLES = 16_384
LEAST_SPREAD = 0.3
MAX_WHITENED = 2_000


@dataclass(frozen=True)
class StudentTraining:
    """How long a hard tree is trained, and with which options."""

    steps: int
    batch_size: int
    learning_rate: float = 0.02
    weight_decay: float = 0.1
    decorrelation: float = 0.5

    def options(self, rows: int, seed: int) -> TrainerOptions:
        """The options of training for this many lessons."""
        batch = min(self.batch_size, rows)
        return TrainerOptions(
            max_epochs=max(1, round(self.steps / math.ceil(rows / batch))),
            batch_size=batch,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            average=0.99,
            seed=seed,
        )


def imitated_numbers(output: Tensor, target: Tensor) -> Tensor:
    """Squared distance from the outputs of the teacher, averaged over the k outputs."""
    shared, wanted = target.chunk(2, 1)
    return (output + shared - wanted).square().mean(1)


def imitated_classes(output: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of the teacher's probabilities."""
    shared, wanted = target.chunk(2, 1)
    return functional.cross_entropy(output + shared, wanted.softmax(1), reduction="none")


def imitated_chance(output: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of the teacher's probability of the second of two classes, whose logit is the one output."""
    shared, wanted = target.chunk(2, 1)
    losses = functional.binary_cross_entropy_with_logits(output + shared, wanted.sigmoid(), reduction="none")
    return losses.mean(1)


_NUMBERS = NamedLoss("imitated_numbers", imitated_numbers)
IMITATIONS = {
    "identity": _NUMBERS,
    "log": _NUMBERS,  # of logarithms
    "softmax": NamedLoss("imitated_classes", imitated_classes),
    "logit": NamedLoss("imitated_chance", imitated_chance),
}
"""The loss for each link."""


def imitation_loss(link: Link) -> NamedLoss:
    """The loss of outputs, (n, k), for targets, (n, 2k): the shared part and the outputs of the teacher."""
    return IMITATIONS[link.name]


def build_student(
    samples: Samples,
    outputs: int,
    depth: int,
    course: StudentTraining,
    *,
    pruning_strength: float,
    max_columns: int | None,
    owner: list[int],
    generator: torch.Generator,
) -> TreeModel:
    """A new tree with a linear model for each node, whose splits spread the samples evenly.

    Splits of few columns get inputs that are only scaled; all other parts get decorrelated ones.
    """
    d = samples.x.shape[1]
    numbers = {column: i for i, column in enumerate(sorted(set(owner)))}
    split = build_split("linear", d, depth, max_columns=max_columns, owner=[numbers[column] for column in owner])
    tree = TreeLayer(split, depth, PRUNING * pruning_strength, batch_size=course.batch_size, final_scale=FINAL_SCALE)
    some = samples[torch.randperm(len(samples), generator=generator)[:START_SAMPLES].to(samples.x.device)]

    def scaled(power: float) -> Whiten:
        return Whiten(d).to(some.x.device).fit(some.x, some.weight, power=power, least_spread=LEAST_SPREAD)

    inputs = scaled(course.decorrelation if d <= MAX_WHITENED else 0.0)
    model = TreeModel(
        tree, build_head("linear", d, depth, outputs), inputs, None if max_columns is None else scaled(0.0)
    )
    model = model.to(some.x.device)
    if depth:
        spread_splits(split, model.tree_inputs(some.x), generator=generator)
    return model


def lessons_for(lessons: DistillationData, columns: list[int]) -> Samples:
    """The samples that a student with these columns learns from."""
    return lessons.samples(torch.tensor(columns, device=lessons.x.device))
