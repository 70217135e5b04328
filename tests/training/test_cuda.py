"""Training on an NVIDIA GPU: seeds, interruptions, and the states of torch's generators."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.problems import Outcome, refresh_masses, run, same_state, samples, tree_model

pytestmark = pytest.mark.gpu


def gpu_run(**options: Any) -> Outcome:
    return run(
        model=tree_model(dropout=0.3).cuda(),
        train=samples(weighted=True).to("cuda"),
        valid=samples(30, seed=1).to("cuda"),
        refresh_masses=refresh_masses,
        **{"max_epochs": 6, "average": 0.9} | options,
    )


@pytest.mark.parametrize("optimizer", ["adamw", "qhadam", "sgd"])
def test_the_same_seed_gives_the_same_bits(optimizer: str) -> None:
    torch.rand(5, device="cuda")
    first = gpu_run(seed=3, optimizer=optimizer)
    torch.rand(5, device="cuda")
    assert same_state(gpu_run(seed=3, optimizer=optimizer).state, first.state)


def test_another_seed_gives_another_run() -> None:
    assert not same_state(gpu_run(seed=3).state, gpu_run(seed=4).state)


def test_torchs_own_generators_are_left_as_they_were() -> None:
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    gpu_run()
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], torch.cuda.get_rng_state())


def test_a_run_on_the_cpu_leaves_the_generator_of_the_gpu_alone() -> None:
    torch.rand(5, device="cuda")
    before = torch.cuda.get_rng_state()
    run(model=tree_model(dropout=0.3))
    assert torch.equal(before, torch.cuda.get_rng_state())


@pytest.mark.parametrize("optimizer", ["adamw", "qhadam"])
def test_a_resumed_run_ends_like_an_uninterrupted_one(optimizer: str, tmp_path: Path) -> None:
    class InterruptionError(Exception):
        pass

    def interrupt(record: dict[str, float]) -> None:
        if record["epoch"] == 4:
            raise InterruptionError

    options: dict[str, Any] = {"optimizer": optimizer, "checkpoint_every": 2}
    path = tmp_path / "run.ckpt"
    with pytest.raises(InterruptionError):
        gpu_run(checkpoint=path, callbacks=[interrupt], **options)
    resumed, expected = gpu_run(checkpoint=path, resume=True, **options), gpu_run(**options)
    assert same_state(resumed.state, expected.state)
    assert resumed.losses == expected.losses


def test_a_run_learns_about_what_it_learns_on_the_cpu() -> None:
    """The order of the samples is another one, because each device draws its own."""
    here = run(max_epochs=20, learning_rate=0.05)
    there = run(model=tree_model().cuda(), train=samples().to("cuda"), max_epochs=20, learning_rate=0.05)
    for outcome in (here, there):
        losses = outcome.history["train_loss"]
        assert losses[-1] < 0.1 * losses[0]
