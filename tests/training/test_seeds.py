"""The same seed gives the same run, and torch's own generators are left unchanged."""

from typing import Any

import pytest
import torch

from tests.training.problems import refresh_masses, run, same_state, samples, tree_model


def dropout_run(**options: Any) -> Any:
    return run(model=tree_model(dropout=0.3), refresh_masses=refresh_masses, **options)


@pytest.mark.parametrize(("optimizer", "average"), [("adamw", 0.9), ("qhadam", 0.0), ("sgd", 0.9)])
def test_a_seed_gives_the_same_bits_whatever_was_drawn_before(optimizer: str, average: float) -> None:
    options: dict[str, Any] = {"optimizer": optimizer, "average": average, "valid": samples(30)}
    first = dropout_run(seed=3, **options)
    torch.rand(5)
    second = dropout_run(seed=3, **options)
    assert same_state(first.state, second.state)
    assert first.losses == second.losses
    assert not same_state(dropout_run(seed=4, **options).state, first.state)


@pytest.mark.parametrize("fails", [False, True])
def test_torchs_own_generators_are_left_as_they_were(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_record: Any) -> None:
        if fails:
            raise InterruptedError

    seeded: list[int] = []  # broke: a run on the CPU seeded all GPUs
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    random = torch.get_rng_state()
    try:
        dropout_run(callbacks=[fail], valid=samples(30))
    except InterruptedError:
        assert fails
    assert torch.equal(random, torch.get_rng_state())
    assert not seeded
