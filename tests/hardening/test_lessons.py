"""What a hard tree learns from."""

import numpy as np
import pytest
import torch

from prunus.hardening.lessons import FEWEST_MADE, REACH, Teacher, make_lessons, make_rows
from prunus.hardening.student import imitation_loss, lessons_for
from prunus.targets import Classes, Numbers, Target
from prunus.targets.links import IDENTITY, LOG, LOGIT, SOFTMAX
from prunus.training import Samples
from tests.hardening.problems import HEADS, rows, soft_tree
from tests.tolerances import assert_same

NUMBERS = Numbers.of(np.zeros((2, 2)))
CLASSES = Classes.of(["a", "b"])
FAR = np.array([[-1e9, -1e9], [1e9, 1e9]], dtype=np.float32)
"""Wanted outputs that limit nothing."""


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def samples(n: int = 5, *, weighted: bool = False) -> Samples:
    weight = torch.arange(1.0, n + 1) if weighted else None
    return Samples(torch.from_numpy(rows(n, 3)), torch.zeros(n, 2), weight)


def test_made_rows_lie_between_two_rows_nearer_to_the_first() -> None:
    corners = Samples(torch.eye(4), torch.zeros(4, 1))
    made, weight = make_rows(corners, 500, generator())
    assert weight is None
    assert made.shape == (500, 4)
    assert_same(made.sum(1), torch.ones(500))
    assert int((made > 0).sum(1).max()) == 2
    assert float(made.max(1).values.min()) >= 1 - REACH
    assert float(made.max(1).values[(made > 0).sum(1) == 2].max()) > 0.95


def test_made_rows_have_the_weights_between_those_of_the_two_rows() -> None:
    x = torch.tensor([[0.0], [1.0], [5.0]])
    made, weight = make_rows(Samples(x, x, 1 + 2 * x[:, 0]), 100, generator())
    assert weight is not None
    assert_same(weight, 1 + 2 * made[:, 0])


def test_one_row_makes_copies_of_itself() -> None:
    made, _ = make_rows(samples(1), 10, generator())
    assert_same(made, samples(1).x.expand(10, -1))


def test_made_rows_depend_on_the_generator_alone() -> None:
    first, again, other = (make_rows(samples(), 20, generator(seed))[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_teacher_wants_what_the_soft_tree_predicts() -> None:
    tree, x = soft_tree(), samples(20).x
    assert torch.equal(Teacher(tree, NUMBERS, FAR).outputs(x), tree(x))


@pytest.mark.parametrize(("target", "is_limited"), [(NUMBERS, True), (CLASSES, False)])
def test_a_teacher_of_numbers_stays_in_the_range_of_the_targets(target: Target, is_limited: bool) -> None:
    tree, x = soft_tree(), 100 * samples(50).x
    out = Teacher(tree, target, np.array([[-1, -2], [1, 0.5]], dtype=np.float32)).outputs(x)
    expected = torch.stack((tree(x)[:, 0].clamp(-1, 1), tree(x)[:, 1].clamp(-2, 0.5)), 1) if is_limited else tree(x)
    assert torch.equal(out, expected)


def test_linear_leaves_share_nothing() -> None:
    assert not Teacher(soft_tree(), NUMBERS, FAR).shared(samples().x).any()


def test_additive_leaves_share_their_curves() -> None:
    tree, x = soft_tree(HEADS["additive"]), samples(20).x
    shared = Teacher(tree, NUMBERS, FAR).shared(x)
    with torch.no_grad():
        tree.head.slope.zero_()  # type: ignore[operator]
        tree.head.bias.zero_()  # type: ignore[operator]
    assert_same(shared, -(tree(x) - Teacher(soft_tree(HEADS["additive"]), NUMBERS, FAR).outputs(x)))
    assert shared.any()


def test_linear_leaves_share_the_curves_of_their_curved_inputs() -> None:
    tree, x = soft_tree(HEADS["curved"]), samples(20).x
    before = tree(x)
    shared = Teacher(tree, NUMBERS, FAR).shared(x)
    assert not Teacher(tree, NUMBERS, FAR, shares_curves=False).shared(x).any()
    with torch.no_grad():
        tree.head.shared.zero_()  # type: ignore[operator]
        tree.head.bias.zero_()  # type: ignore[operator]
    assert_same(shared, before - tree(x))
    assert shared.any()


@pytest.mark.parametrize("weighted", [False, True])
def test_lessons_are_the_rows_and_made_ones(weighted: bool) -> None:
    tree, given = soft_tree(HEADS["additive"]), samples(9, weighted=weighted)
    teacher = Teacher(tree, NUMBERS, FAR)
    lessons = make_lessons(teacher, given, generator())
    assert torch.equal(lessons.x[:9], given.x)
    assert len(lessons.x) == 9 + FEWEST_MADE
    assert torch.equal(lessons.wanted, teacher.outputs(lessons.x))
    assert torch.equal(lessons.shared, teacher.shared(lessons.x))
    if not weighted:
        assert lessons.weight is None
        return
    assert lessons.weight is not None
    assert_same(lessons.weight.mean(), torch.tensor(1.0))
    assert_same(lessons.weight[1:9] / lessons.weight[0], torch.arange(2.0, 10.0))


def test_a_student_gets_its_columns_and_shared_and_wanted_outputs() -> None:
    teacher = Teacher(soft_tree(HEADS["additive"]), NUMBERS, FAR)
    lessons = make_lessons(teacher, samples(4), generator())
    made = lessons_for(lessons, [2, 0])
    assert torch.equal(made.x, lessons.x[:, [2, 0]])
    assert torch.equal(made.y[:, :2], lessons.shared)
    assert torch.equal(made.y[:, 2:], lessons.wanted)


def test_the_loss_of_numbers_is_the_squared_distance_to_what_is_wanted() -> None:
    output, shared, wanted = torch.randn(3, 5, 2, generator=generator())
    found = imitation_loss(IDENTITY)(output, torch.cat((shared, wanted), 1))
    assert_same(found, (output + shared - wanted).square().mean(1))
    assert_same(imitation_loss(IDENTITY)(wanted - shared, torch.cat((shared, wanted), 1)), torch.zeros(5))


def test_the_loss_of_classes_is_the_cross_entropy_of_probabilities() -> None:
    output, shared, wanted = torch.randn(3, 5, 4, generator=generator())
    found = imitation_loss(SOFTMAX)(output, torch.cat((shared, wanted), 1))
    expected = -(wanted.softmax(1) * (output + shared).log_softmax(1)).sum(1)
    assert_same(found, expected)


def test_the_loss_of_classes_is_least_for_what_is_wanted() -> None:
    shared, wanted = torch.randn(2, 5, 3, generator=generator())
    output = (wanted - shared + 7.0).requires_grad_()  # a constant changes no probability
    (gradient,) = torch.autograd.grad(imitation_loss(SOFTMAX)(output, torch.cat((shared, wanted), 1)).sum(), output)
    assert_same(gradient, torch.zeros(5, 3))


def test_the_loss_of_logarithms_is_that_of_numbers() -> None:
    assert imitation_loss(LOG) == imitation_loss(IDENTITY)


def test_the_loss_of_one_logit_is_that_of_two_scores() -> None:
    output, shared, wanted = torch.randn(3, 5, 1, generator=generator())
    found = imitation_loss(LOGIT)(output, torch.cat((shared, wanted), 1))
    zero = torch.zeros(5, 1)
    both = [torch.cat((zero, part), 1) for part in (output, shared, wanted)]
    assert_same(found, imitation_loss(SOFTMAX)(both[0], torch.cat(both[1:], 1)))


def test_losses_of_imitation_are_known_by_their_names() -> None:
    names = [imitation_loss(link).name for link in (IDENTITY, LOG, SOFTMAX, LOGIT)]
    assert names == ["imitated_numbers", "imitated_numbers", "imitated_classes", "imitated_chance"]
