"""Linear splits of at most this many columns, which are chosen during training."""

import pytest
import torch
from torch import Tensor

from prunus.errors import InputValueError
from prunus.nn import LinearHead, LinearSplit, TreeLayer, TreeModel, Whiten
from prunus.nn.registry import model_from_record, model_to_record, model_with_weights
from prunus.training import Samples, Trainer, TrainerOptions, find_loss
from tests.nn.problems import inputs, randomized
from tests.tolerances import assert_same

D, DEPTH = 6, 3
OWNER = [0, 0, 1, 2, 2, 2]


def split(max_columns: int | None = 2, owner: list[int] | None = None, *, seed: int = 2) -> LinearSplit:
    made = LinearSplit(D, DEPTH, max_columns, owner)
    randomized(made, seed=seed)
    return made


def counts(made: LinearSplit) -> list[int]:
    """The number of columns of the table that each split uses."""
    return [len({made.owner[i] for i in row.nonzero().flatten().tolist()}) for row in made.used_weight]


def model(max_columns: int | None = 2, owner: list[int] | None = None) -> TreeModel:
    tree = TreeLayer(split(max_columns, owner), DEPTH, 0.1)
    whole = TreeModel(tree, LinearHead(D, DEPTH, 1), Whiten(D), Whiten(D))
    randomized(whole)
    return whole


def trained(whole: TreeModel) -> TreeModel:
    x = inputs(64, D)
    options = TrainerOptions(max_epochs=10, batch_size=16, average=0.9)
    Trainer(whole, find_loss("squared_error"), options).fit(Samples(x, x[:, :1] * x[:, 1:2]))
    return whole


@pytest.mark.parametrize("share", [0.6, 1.0])
@pytest.mark.parametrize(("max_columns", "owner"), [(1, None), (2, None), (5, None), (1, OWNER), (2, OWNER)])
def test_splits_end_with_as_many_columns_as_allowed(max_columns: int, owner: list[int] | None, share: float) -> None:
    made = split(max_columns, owner)
    made.on_progress(share)
    assert counts(made) == [max_columns] * 7


def test_a_limit_that_is_no_limit_changes_nothing() -> None:
    for max_columns, owner in ((None, None), (D, None), (99, None), (3, OWNER)):
        made = split(max_columns, owner)
        made.on_progress(1.0)
        assert torch.equal(made.used_weight, made.weight)


def test_the_columns_with_the_largest_weights_stay() -> None:
    made = split(2)
    made.on_progress(1.0)
    for weight, used in zip(made.weight.abs(), made.used_weight, strict=True):
        assert set(used.nonzero().flatten().tolist()) == set(weight.topk(2).indices.tolist())


def test_inputs_of_one_column_stay_or_leave_together() -> None:
    made = split(1, OWNER)
    made.on_progress(1.0)
    sizes = torch.stack([made.weight[:, torch.tensor(OWNER) == column].square().sum(1) for column in range(3)], 1)
    for best, used in zip(sizes.argmax(1).tolist(), made.used, strict=True):
        assert used.tolist() == [float(column == best) for column in OWNER]


def test_columns_leave_one_after_another() -> None:
    made = split(1)
    seen = []
    for step in range(101):
        before = made.used.clone()
        made.on_progress(step / 100)
        assert bool((made.used <= before).all())
        assert made.settled == (step >= 60)
        seen.append(counts(made)[0])
    assert seen[:10] == [D] * 10
    assert sorted(set(seen), reverse=True) == [6, 5, 4, 3, 2, 1]
    assert sorted(seen, reverse=True) == seen


def test_a_column_that_has_left_does_not_come_back() -> None:
    made = split(2)
    made.on_progress(0.4)
    gone = made.used == 0
    assert gone.any()
    with torch.no_grad():
        made.weight[gone] = 1e6
    made.on_progress(0.0)
    made.on_progress(0.4)
    made.on_progress(1.0)
    assert not made.used_weight[gone].any()
    assert counts(made) == [2] * 7


def test_weights_that_are_not_used_have_no_gradient() -> None:
    made = split(2)
    made.on_progress(1.0)
    made(inputs(9, D)).square().sum().backward()
    assert made.weight.grad is not None
    assert torch.equal(made.weight.grad != 0, made.used > 0)


@pytest.mark.parametrize(("max_columns", "owner"), [(1, None), (2, None), (1, OWNER), (2, OWNER)])
def test_a_trained_tree_has_few_columns(max_columns: int, owner: list[int] | None) -> None:
    made = trained(model(max_columns, owner)).tree.split
    assert isinstance(made, LinearSplit)
    assert counts(made) == [max_columns] * 7
    read = made.read(Whiten(D).fit(inputs(50, D), power=0.0))
    assert read.weight is not None
    assert [len({made.owner[i] for i in row.nonzero()[0]}) for row in read.weight] == [max_columns] * 7


@pytest.mark.parametrize(
    ("max_columns", "owner"), [(0, None), (-1, None), (1, [0]), (1, [0] * 7), (1, [0, 1, 2, 3, 4, 6]), (1, [-1] * 6)]
)
def test_what_cannot_be_chosen_from_is_refused(max_columns: int, owner: list[int] | None) -> None:
    with pytest.raises(InputValueError, match="max_columns must be at least 1 and owner must have a column for each"):
        LinearSplit(D, DEPTH, max_columns, owner)


@pytest.mark.parametrize(("max_columns", "owner"), [(None, None), (2, None), (2, OWNER)])
def test_a_model_survives_a_record(max_columns: int | None, owner: list[int] | None) -> None:
    first = trained(model(max_columns, owner))
    record = model_to_record(first)
    for second in (model_from_record(record), model_with_weights(record, first.state_dict())):
        second.load_state_dict(first.state_dict())
        assert torch.equal(second.eval()(inputs(9, D)), first(inputs(9, D)))
        assert isinstance(second.split_inputs, Whiten)
        assert second.tree.split.options() == first.tree.split.options()  # type: ignore[operator]


def growing(final_scale: float = 100.0) -> TreeLayer:
    layer = TreeLayer(LinearSplit(D, DEPTH), DEPTH, final_scale=final_scale)
    randomized(layer)
    return layer


def routes(layer: TreeLayer, x: Tensor) -> Tensor:
    z: Tensor = layer.eval()(x).z
    return z


def test_the_scale_of_scores_grows_from_1() -> None:
    layer = growing()
    scales = []
    for step in range(101):
        layer.on_progress(step / 100)
        scales.append(float(layer.scale))
        assert layer.settled == (step >= 90)
    assert scales[:11] == [1.0] * 11
    assert scales[90:] == [100.0] * 11
    assert sorted(scales) == scales
    assert scales[50] == pytest.approx(10.0)


def test_a_scale_multiplies_scores() -> None:
    layer, plain, x = growing(), growing(1.0), inputs(20, D)
    layer.on_progress(1.0)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.mul_(100.0)
    assert_same(routes(layer, x), routes(plain, x))
    assert_same(layer.train()(x).z, plain.train()(x).z)


def test_in_the_end_nearly_all_rows_follow_one_path() -> None:
    layer, x = growing(200.0), inputs(300, D)
    layer.on_progress(1.0)
    z = routes(layer, x)
    assert float(((z > 0) & (z < 1)).any(1).float().mean()) < 0.05
    assert_same(z[:, 7:].sum(1), torch.ones(300), 0.5)


@pytest.mark.parametrize("final_scale", [200.0, 1e4 / 3])
def test_a_state_holds_the_scale(final_scale: float) -> None:
    first, second, x = growing(final_scale), growing(final_scale), inputs(20, D)
    first.on_progress(1.0)
    second.load_state_dict(first.state_dict())
    assert torch.equal(routes(second, x), routes(first, x))


def test_inputs_of_the_splits_are_for_the_tree_alone() -> None:
    class Doubled(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * x

    class Shifted(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1

    tree, head, x = growing(1.0), LinearHead(D, DEPTH, 2), inputs(20, D)
    randomized(head)
    split_inputs, usual = TreeModel(tree, head, Doubled(), Shifted()), TreeModel(tree, head, Doubled())
    assert torch.equal(split_inputs(x), head(2 * x, tree(x + 1).z))
    assert torch.equal(usual(x), head(2 * x, tree(2 * x).z))
    assert isinstance(split_inputs.tree_inputs, Shifted)
    assert isinstance(usual.tree_inputs, Doubled)
    split_inputs.solve_masses(x)
    masses = tree.a.clone()
    tree.solve_masses(x + 1)
    assert torch.equal(tree.a, masses)
