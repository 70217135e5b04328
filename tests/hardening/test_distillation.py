"""What a hard tree learns from, and the losses of imitation."""

import numpy as np
import pytest
import torch

from prunus.hardening.distillation import FEWEST_SYNTHETIC, REACH, Teacher, make_distillation_data, make_synthetic_rows
from prunus.hardening.student import imitation_loss, lessons_for
from prunus.targets import Classes, Numbers
from prunus.targets.links import IDENTITY, LOG, LOGIT, SOFTMAX
from prunus.training import Samples
from tests.hardening.problems import HEADS, rows, soft_tree
from tests.tolerances import assert_same

NUMBERS = Numbers.of(np.zeros((2, 2)))
FAR = np.array([[-1e9, -1e9], [1e9, 1e9]], dtype=np.float32)
"""Wanted outputs that limit nothing."""


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def samples(n: int = 5, *, weighted: bool = False) -> Samples:
    weight = torch.arange(1.0, n + 1) if weighted else None
    return Samples(torch.from_numpy(rows(n, 3)), torch.zeros(n, 2), weight)


def test_synthetic_rows_lie_between_two_rows_nearer_to_the_first() -> None:
    made, weight = make_synthetic_rows(Samples(torch.eye(4), torch.zeros(4, 1)), 500, generator())
    assert weight is None
    assert made.shape == (500, 4)
    assert_same(made.sum(1), torch.ones(500))
    assert int((made > 0).sum(1).max()) == 2
    assert float(made.max(1).values.min()) >= 1 - REACH
    assert float(made.max(1).values[(made > 0).sum(1) == 2].max()) > 0.95
    x = torch.tensor([[0.0], [1.0], [5.0]])
    made, weight = make_synthetic_rows(Samples(x, x, 1 + 2 * x[:, 0]), 100, generator())
    assert weight is not None
    assert_same(weight, 1 + 2 * made[:, 0])
    assert_same(make_synthetic_rows(samples(1), 10, generator())[0], samples(1).x.expand(10, -1))


def test_synthetic_rows_depend_on_the_generator_alone() -> None:
    first, again, other = (make_synthetic_rows(samples(), 20, generator(seed))[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_teacher_wants_predictions_in_the_range_of_the_targets() -> None:
    tree, x = soft_tree(), 100 * samples(50).x
    assert torch.equal(Teacher(tree, NUMBERS, FAR).outputs(x), tree(x))
    narrow = np.array([[-1, -2], [1, 0.5]], dtype=np.float32)
    expected = torch.stack((tree(x)[:, 0].clamp(-1, 1), tree(x)[:, 1].clamp(-2, 0.5)), 1)
    assert torch.equal(Teacher(tree, NUMBERS, narrow).outputs(x), expected)
    assert torch.equal(Teacher(tree, Classes.of(["a", "b"]), narrow).outputs(x), tree(x))


@pytest.mark.parametrize("head", HEADS)
def test_curves_of_all_nodes_are_shared(head: str) -> None:
    tree, x = soft_tree(HEADS[head]), samples(20).x
    before, shared = tree(x), Teacher(tree, NUMBERS, FAR).shared(x)
    assert not Teacher(tree, NUMBERS, FAR, shares_curves=False).shared(x).any()
    with torch.no_grad():
        tree.head.bias.zero_()  # type: ignore[operator]
        if head == "linear":
            assert not shared.any()
            return
        (tree.head.slope if head == "additive" else tree.head.shared).zero_()  # type: ignore[operator]
    assert_same(shared, before - tree(x))
    assert shared.any()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_data_are_the_rows_and_synthetic_ones(weighted: bool) -> None:
    given, teacher = samples(9, weighted=weighted), Teacher(soft_tree(HEADS["additive"]), NUMBERS, FAR)
    data = make_distillation_data(teacher, given, generator())
    assert torch.equal(data.x[:9], given.x)
    assert len(data.x) == 9 + FEWEST_SYNTHETIC
    assert torch.equal(data.wanted, teacher.outputs(data.x))
    assert torch.equal(data.shared, teacher.shared(data.x))
    assert (data.weight is not None) == weighted
    if data.weight is not None:
        assert_same(data.weight.mean(), torch.tensor(1.0))
        assert_same(data.weight[1:9] / data.weight[0], torch.arange(2.0, 10.0))
    chosen = lessons_for(data, [2, 0])  # for a student of these columns
    assert torch.equal(chosen.x, data.x[:, [2, 0]])
    assert torch.equal(chosen.y, torch.cat((data.shared, data.wanted), 1))


def test_losses_of_imitation_are_those_of_what_is_wanted() -> None:
    output, shared, wanted = torch.randn(3, 5, 2, generator=generator())
    target, sums = torch.cat((shared, wanted), 1), output + shared
    for link in (IDENTITY, LOG):
        assert_same(imitation_loss(link)(output, target), (sums - wanted).square().mean(1))
    assert_same(imitation_loss(SOFTMAX)(output, target), -(wanted.softmax(1) * sums.log_softmax(1)).sum(1))
    one = torch.cat((shared[:, :1], wanted[:, :1]), 1)  # one logit is two scores, the first of which is 0
    two = torch.stack((torch.zeros(5), shared[:, 0], torch.zeros(5), wanted[:, 0]), 1)
    scores = torch.stack((torch.zeros(5), output[:, 0]), 1)
    assert_same(imitation_loss(LOGIT)(output[:, :1], one), imitation_loss(SOFTMAX)(scores, two))
    output = (wanted - shared + 7.0).requires_grad_()  # a constant changes no probability
    (gradient,) = torch.autograd.grad(imitation_loss(SOFTMAX)(output, target).sum(), output)
    assert_same(gradient, torch.zeros(5, 2))
    names = [imitation_loss(link).name for link in (IDENTITY, LOG, SOFTMAX, LOGIT)]
    assert names == ["imitated_numbers", "imitated_numbers", "imitated_classes", "imitated_chance"]
