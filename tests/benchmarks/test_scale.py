"""The benchmark of large tables: its bars, its file, the cost of a step, and a process that is killed."""

import pytest

from benchmarks import scale_cost, scale_killed


def test_a_step_sums_at_least_the_gradient_and_the_nodes() -> None:
    alone, shared = scale_cost.measure(sizes=(1, 4), shapes=[(3, 2)])
    splits, nodes, columns = 3, 7, 3
    assert shared.sums_a_step >= 2
    assert shared.kb_a_step >= (4 * (splits + nodes) * (columns + 1) + 16 * nodes) / 1e3
    assert alone.sums_a_step < 1
    assert 0 < shared.ms_a_step < alone.ms_a_step


@pytest.mark.slow
def test_a_run_of_which_a_process_was_killed_ends_as_if_nothing_had_happened() -> None:
    _, bars = scale_killed.measure(20_000)
    assert [bar.claim for bar in bars if not bar.met] == []
