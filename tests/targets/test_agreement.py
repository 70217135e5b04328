"""What is told of soft trees whose paths predict something else."""

import pytest

from prunus.targets import disagreement, remarks
from prunus.targets.target import Task


@pytest.mark.parametrize(
    ("task", "agreement", "found"),
    [
        ("classes", 0.949, "would give 5% of the rows another class"),
        ("classes", 0.0, "would give 100% of the rows another class"),
        ("numbers", 0.97, "explain only 97% of the variance"),
        ("numbers", -3.0, "explain none of its predictions"),
    ],
)
def test_paths_that_do_not_explain_a_tree(task: Task, agreement: float, found: str) -> None:
    told = disagreement(task, agreement)
    assert told is not None
    assert found in told
    assert 'routing="hard"' in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("task", "agreement"), [("classes", 0.95), ("numbers", 0.98), ("clusters", 0.0), ("classes", None)]
)
def test_nothing_is_told_of_others(task: Task, agreement: float | None) -> None:
    assert disagreement(task, agreement) is None


def test_a_tree_without_splits_is_told_of_first() -> None:
    assert remarks("numbers", 1.0, all_pruned=True) == "No split was worth keeping: all rows end in one leaf."
    both = remarks("numbers", 0.5, all_pruned=True)
    assert both == f"{remarks('numbers', 1.0, all_pruned=True)} {disagreement('numbers', 0.5)}"
    assert remarks("numbers", 0.5, all_pruned=False) == disagreement("numbers", 0.5)
    assert remarks("numbers", 1.0, all_pruned=False) is None
