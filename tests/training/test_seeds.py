"""The same seed gives the same run, and torch's own generators are left unchanged."""

from typing import Any

import pytest
import torch

from tests.training.problems import refresh_masses, run, same_state, samples, tree_model


def dropout_run(**options: Any) -> Any:
    return run(model=tree_model(dropout=0.3), refresh_masses=refresh_masses, **options)


@pytest.mark.parametrize(("optimizer", "average"), [("adamw", 0.9), ("qhadam", 0.0), ("sgd", 0.9)])
def test_the_same_seed_gives_the_same_bits(optimizer: str, average: float) -> None:
    first, second = (dropout_run(seed=3, optimizer=optimizer, average=average, valid=samples(30)) for _ in range(2))
    assert same_state(first.state, second.state)
    assert first.losses == second.losses


def test_random_numbers_drawn_before_do_not_matter() -> None:
    first = dropout_run(seed=3)
    torch.rand(5)
    assert same_state(first.state, dropout_run(seed=3).state)


def test_another_seed_gives_another_run() -> None:
    assert not same_state(dropout_run(seed=3).state, dropout_run(seed=4).state)


@pytest.mark.parametrize("valid", [None, samples(30)])
def test_torchs_own_generator_is_left_as_it_was(valid: Any) -> None:
    random = torch.get_rng_state()
    dropout_run(valid=valid)
    assert torch.equal(random, torch.get_rng_state())


def test_torchs_own_generator_is_left_as_it_was_after_an_error() -> None:
    def fail(_record: Any) -> None:
        raise KeyboardInterrupt

    random = torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        dropout_run(callbacks=[fail])
    assert torch.equal(random, torch.get_rng_state())


def test_generators_of_other_devices_are_not_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded: list[int] = []  # broke: a run on the CPU seeded all GPUs
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    dropout_run()
    assert not seeded
