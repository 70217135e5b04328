"""The tree layer: routes of a training batch, masses for eval mode, routes by these, and its options."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputTypeError, InputValueError
from prunus.nn import ELUSplit, LinearSplit, MLPSplit, SparseMLPSplit, TreeLayer, TreeModel, Whiten
from prunus.ops import tree_traverse
from prunus.ops.routes import tree_routes
from tests.nn.problems import generator, inputs, tree
from tests.tolerances import assert_same

MODES = pytest.mark.parametrize("training", [True, False])


def weights(n: int) -> Tensor:
    return 2 * torch.rand(n, generator=generator(4))


def with_masses(depth: int = 3) -> TreeLayer:
    """A tree in eval mode with masses that no data gave: some pruned, some whole, some between."""
    layer = tree(depth).eval()
    layer.a.copy_((torch.rand(2 ** (depth + 1) - 1, generator=generator(3)) * 1.6 - 0.3).clamp(0.0, 1.0))
    return layer


def expected_masses(layer: TreeLayer, x: Tensor, lam: float, weight: Tensor | None = None) -> Tensor:
    with torch.no_grad():
        return tree_traverse(layer.split(x).double(), lam, sample_weight=weight).a


@pytest.mark.parametrize("weight", [None, weights(63)], ids=["", "weighted"])
@pytest.mark.parametrize(("depth", "batch_size", "scale"), [(0, None, 1), (1, None, 1), (3, None, 1), (3, 16, 63 / 16)])
def test_training_solves_the_program_of_the_batch(
    depth: int, batch_size: int | None, scale: float, weight: Tensor | None
) -> None:
    layer, x = tree(depth, strength=2.5, batch_size=batch_size), inputs(63)
    z, a = layer(x, weight)
    expected = tree_traverse(layer.split(x), 2.5 * scale, sample_weight=weight)
    assert torch.equal(z, expected.z)
    assert torch.equal(a, expected.a)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_eval_mode_routes_by_the_stored_masses(depth: int) -> None:
    layer, x = with_masses(depth), inputs(63)
    z, a = layer(x)
    assert torch.equal(z, tree_routes(layer.split(x), layer.a))
    assert torch.equal(a, layer.a)
    assert (tree(depth).eval()(x).a == 1).all()  # nothing is pruned before masses are stored


def test_eval_mode_gives_a_row_the_same_routes_alone_and_among_others() -> None:
    layer, x = with_masses(), inputs(300)
    together = layer(x).z
    assert_same(torch.cat([layer(row).z for row in torch.split(x, 1)]), together)
    assert_same(layer(x.flip(0)).z.flip(0), together)


@MODES
def test_forward_changes_nothing(training: bool) -> None:
    layer, x, w = with_masses().train(training), inputs(63), weights(63)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    random = torch.get_rng_state()
    first, second = layer(x, w), layer(x, w)
    assert torch.equal(first.z, second.z)
    assert torch.equal(first.a, second.a)
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert torch.equal(x, inputs(63))
    assert torch.equal(w, weights(63))
    assert torch.equal(random, torch.get_rng_state())
    assert layer.training is training


@MODES
def test_gradients_reach_the_split(training: bool) -> None:
    layer = with_masses().train(training)
    z = layer(inputs(63)).z
    grads = torch.autograd.grad((z * torch.linspace(-1, 1, 15)).sum(), list(layer.parameters()))
    assert all(grad.any() for grad in grads)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("chunk", [1000, 63, 64, 7])
@pytest.mark.parametrize(
    ("strength", "batch_size", "start"), [(20.0, None, 0.0), (20.0, None, 0.3), (5.0, 16, 1.0), (0.0, None, 0.3)]
)
def test_masses_are_those_of_all_samples(
    strength: float, batch_size: int | None, start: float, chunk: int, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if streamed:
        monkeypatch.setattr("prunus.nn.layer.CELLS", 10 * 15)
    layer, x, seen = tree(strength=strength, batch_size=batch_size), inputs(63), []

    def double(rows: Tensor) -> Tensor:
        seen.append(len(rows))
        return 2 * rows

    for w in (None, weights(63)):
        layer.a.fill_(start)
        layer.solve_masses(x, w, inputs=double, chunk=chunk)
        assert_same(layer.a, expected_masses(layer, 2 * x, strength * 63 / (batch_size or 63), w))
    assert max(seen) <= chunk


def test_eval_mode_then_routes_as_training_on_all_samples_does() -> None:
    layer, x = tree(strength=20.0), inputs(63)
    together = layer(x)
    layer.solve_masses(x)
    z, a = layer.eval()(x)
    assert_same(z, together.z)
    assert_same(a, together.a)


def test_few_passes_over_the_chunks_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.nn.layer.CELLS", 700 * 15)
    layer, x, rows = tree(strength=200.0), inputs(6300), 0

    def count(part: Tensor) -> Tensor:
        nonlocal rows
        rows += len(part)
        return part

    layer.solve_masses(x, inputs=count, chunk=700)
    assert rows < 4.5 * 6300  # from a start that knows nothing it takes twice as many


def test_masses_are_solved_in_eval_mode_without_a_trace() -> None:
    split = nn.Sequential(nn.BatchNorm1d(5), LinearSplit(5, 3))
    layer = TreeLayer(split, 3)
    split[0].eval()  # frozen, as in transfer learning
    layer.solve_masses(inputs(9))
    assert [module.training for module in (layer, *split)] == [True, False, True]
    before = nn.Sequential(nn.BatchNorm1d(5), nn.Dropout(0.5))
    whole = TreeModel(tree(strength=20.0), nn.Identity(), before)  # broke: only the tree was in eval mode
    x, random = inputs(63) + 3.0, torch.get_rng_state()
    whole.solve_masses(x)
    assert torch.equal(random, torch.get_rng_state())
    assert before[0].num_batches_tracked == 0
    assert_same(whole.tree.a, expected_masses(whole.tree, before.eval()(x), 20.0))


@pytest.mark.parametrize("kind", [LinearSplit, ELUSplit, MLPSplit, SparseMLPSplit])
@pytest.mark.parametrize("whitened", [False, True])
def test_masses_are_those_of_the_scores_for_every_kind_of_split(kind: type[nn.Module], whitened: bool) -> None:
    layer, x = TreeLayer(kind(5, 3), 3, 20.0), 3 * inputs(200, 5)
    before: nn.Module = Whiten(5).fit(x, power=0.2) if whitened else nn.Identity()
    layer.solve_masses(x, inputs=before)
    assert_same(layer.a, expected_masses(layer, before(x), 20.0))


class Nothing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, :0]


@MODES
@pytest.mark.parametrize("width", [0, 6, 8, 15])
def test_scores_of_a_wrong_width_are_refused(width: int, training: bool) -> None:
    layer = TreeLayer(nn.Linear(5, width) if width else Nothing(), depth=3).train(training)
    name = type(layer.split).__name__
    with pytest.raises(InputValueError, match=rf"depth 3 must return .* \(n, 7\), got \(9, {width}\) from {name}"):
        layer(inputs(9))


WRONG: list[tuple[dict[str, Any], str]] = [
    *(({"depth": depth}, f"depth must be from 0 to 16, got {depth}") for depth in (-1, 17)),
    *(({"pruning_strength": lam}, f"pruning_strength must be finite and at least 0, got .*{lam}")
      for lam in (-1.0, float("nan"), float("inf"))),
    *(({"batch_size": size}, f"batch_size must be at least 1, got {size}") for size in (0, -8)),
    *(({"final_scale": scale}, "final_scale must be finite and at least 1")
      for scale in (0.0, 0.99, -1.0, float("nan"), float("inf"))),
    ({"depth": 2.0}, "depth must be an int"),
    ({"batch_size": 1.5}, "batch_size must be an int or None"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_options_that_cannot_be_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises((InputValueError, InputTypeError), match=message):
        TreeLayer(nn.Identity(), **{"depth": 3} | wrong)


def test_no_samples_are_refused() -> None:
    with pytest.raises(InputValueError, match=r"at least one sample to solve for masses, got x.shape=\(0, 5\)"):
        tree().solve_masses(inputs(0))
