"""The figures of the paper: made from numbers that are stored part by part, and not computed twice."""

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.paper.__main__ import RESULTS
from benchmarks.paper.figures import active_nodes, relaxation_gap
from benchmarks.paper.figures.making import FIGURES, text_of
from benchmarks.paper.figures.numbers import Numbers

STORED = sorted(path.stem for path in RESULTS.glob("*.md") if path.stem in FIGURES)


@pytest.fixture(autouse=True)
def _threads() -> Any:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_of_the_table_can_be_made(name: str) -> None:
    figure = FIGURES[name].load()
    assert all(callable(part) for part in (figure.compute, figure.draw, figure.describe))


@pytest.mark.parametrize("name", STORED)
def test_the_stored_text_is_that_of_the_stored_numbers(name: str) -> None:
    table = Numbers(RESULTS / f"{name}.csv").table()
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == text_of(name, table)


def test_relaxed_and_integer_solutions_meet_as_lam_grows() -> None:
    near, far = (relaxation_gap.gaps(lam, seed=3) for lam in (1e4, 3.0))
    assert near["a"] < 0.01 < 0.1 < far["a"]
    assert near["z"] < 0.01 < 0.1 < far["z"]


@pytest.mark.parametrize("lam", [0.1, 1.0, 5.0, 20.0])
def test_masses_rounded_at_one_half_are_the_integer_solution(lam: float) -> None:
    assert sum(relaxation_gap.gaps(lam, seed)["rounded"] for seed in range(30)) == 0


def test_batches_leave_fewer_nodes_active_than_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(active_nodes, "SEEDS", (0,))
    monkeypatch.setattr(active_nodes, "OPTIONS", active_nodes.OPTIONS | {"max_epochs": 2})
    numbers = Numbers(tmp_path / "active.csv")
    active_nodes.compute(numbers)
    table = numbers.table()
    assert table["epoch"].tolist() == [1, 2]
    assert (table["batches"] < table["all_rows"]).all()
