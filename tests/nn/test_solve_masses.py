"""Masses for eval mode: those of the program over all samples, whatever they are cut into."""

import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputValueError
from prunus.nn import ELUSplit, LinearSplit, MLPSplit, SparseMLPSplit, TreeLayer, TreeModel, Whiten
from prunus.ops import tree_traverse
from tests.nn.problems import generator, inputs, tree
from tests.tolerances import assert_same


def weights(n: int) -> Tensor:
    return 2 * torch.rand(n, generator=generator(4))


@pytest.fixture(params=[False, True], ids=["at-once", "streamed"])
def _memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for all samples, or too little."""
    if request.param:
        monkeypatch.setattr("prunus.nn.layer.CELLS", 10 * 15)


in_any_memory = pytest.mark.usefixtures("_memory")


def expected_masses(layer: TreeLayer, x: Tensor, lam: float, weight: Tensor | None = None) -> Tensor:
    with torch.no_grad():
        return tree_traverse(layer.split(x).double(), lam, sample_weight=weight).a


@in_any_memory
@pytest.mark.parametrize("chunk", [1000, 63, 64, 7])
def test_masses_do_not_depend_on_the_chunks(chunk: int) -> None:
    layer, x = tree(strength=20.0), inputs(63)
    layer.solve_masses(x, chunk=chunk)
    assert ((layer.a > 0) & (layer.a < 1)).sum() > 5
    assert_same(layer.a, expected_masses(layer, x, 20.0))


@in_any_memory
@pytest.mark.parametrize("chunk", [1000, 7])
def test_masses_take_weights_into_account(chunk: int) -> None:
    layer, x, w = tree(strength=20.0), inputs(63), weights(63)
    layer.solve_masses(x, w, chunk=chunk)
    assert_same(layer.a, expected_masses(layer, x, 20.0, w))


@in_any_memory
@pytest.mark.parametrize("chunk", [1000, 7])
def test_the_pruning_strength_is_scaled_to_the_number_of_samples(chunk: int) -> None:
    layer, x = tree(strength=5.0, batch_size=16), inputs(63)
    layer.solve_masses(x, chunk=chunk)
    assert_same(layer.a, expected_masses(layer, x, 5.0 * 63 / 16))


@in_any_memory
@pytest.mark.parametrize("chunk", [1000, 7])
def test_no_strength_prunes_nothing(chunk: int) -> None:
    layer = tree(strength=0.0)
    layer.solve_masses(inputs(63), chunk=chunk)
    assert (layer.a == 1).all()


@in_any_memory
@pytest.mark.parametrize("start", [0.0, 0.3, 1.0])
def test_masses_stored_before_do_not_matter(start: float) -> None:
    layer, x = tree(strength=20.0), inputs(63)
    layer.a.fill_(start)
    layer.solve_masses(x, chunk=7)
    assert_same(layer.a, expected_masses(layer, x, 20.0))


def test_eval_mode_then_routes_as_training_on_all_samples_does() -> None:
    layer, x = tree(strength=20.0), inputs(63)
    together = layer(x)
    layer.solve_masses(x)
    z, a = layer.eval()(x)
    assert_same(z, together.z)
    assert_same(a, together.a)


@in_any_memory
@pytest.mark.parametrize("chunk", [1000, 7])
def test_inputs_are_made_from_x_a_chunk_at_a_time(chunk: int) -> None:
    layer, x, seen = tree(strength=20.0), inputs(63), []

    def double(rows: Tensor) -> Tensor:
        seen.append(len(rows))
        return 2 * rows

    layer.solve_masses(x, inputs=double, chunk=chunk)
    assert max(seen) <= chunk
    assert_same(layer.a, expected_masses(layer, 2 * x, 20.0))


def test_few_passes_over_the_chunks_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.nn.layer.CELLS", 700 * 15)
    layer, x, rows = tree(strength=200.0), inputs(6300), 0

    def count(part: Tensor) -> Tensor:
        nonlocal rows
        rows += len(part)
        return part

    layer.solve_masses(x, inputs=count, chunk=700)
    assert rows < 4.5 * 6300  # from a start that knows nothing it takes twice as many


def test_a_part_in_another_mode_stays_in_it() -> None:
    split = nn.Sequential(nn.BatchNorm1d(5), LinearSplit(5, 3))
    layer = TreeLayer(split, 3)
    split[0].eval()  # frozen, as in transfer learning
    layer.solve_masses(inputs(9))
    assert [module.training for module in (layer, *split)] == [True, False, True]


def test_neither_dropout_nor_normalization_run_in_training_mode() -> None:
    before = nn.Sequential(nn.BatchNorm1d(5), nn.Dropout(0.5))
    whole = TreeModel(tree(strength=20.0), nn.Identity(), before)  # broke: only the tree was in eval mode
    x, random = inputs(63) + 3.0, torch.get_rng_state()
    whole.solve_masses(x)
    assert torch.equal(random, torch.get_rng_state())
    assert before[0].num_batches_tracked == 0
    assert_same(whole.tree.a, expected_masses(whole.tree, before.eval()(x), 20.0))


def test_no_samples_are_refused() -> None:
    with pytest.raises(InputValueError, match=r"at least one sample to solve for masses, got x.shape=\(0, 5\)"):
        tree().solve_masses(inputs(0))


@in_any_memory
@pytest.mark.parametrize("kind", [LinearSplit, ELUSplit, MLPSplit, SparseMLPSplit])
@pytest.mark.parametrize("whitened", [False, True])
def test_masses_are_those_of_the_scores_for_every_kind_of_split(kind: type[nn.Module], whitened: bool) -> None:
    layer, x = TreeLayer(kind(5, 3), 3, 20.0), 3 * inputs(200, 5)
    before: nn.Module = Whiten(5).fit(x, power=0.2) if whitened else nn.Identity()
    layer.solve_masses(x, inputs=before)
    assert_same(layer.a, expected_masses(layer, before(x), 20.0))
