"""The figures of the paper: made from numbers that are stored part by part, and not computed twice."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure

from benchmarks.harness.sets.sources import DataFile, Source
from benchmarks.harness.solvers import SIZES, SOLVERS, TRAVERSE
from benchmarks.paper.__main__ import RESULTS, main
from benchmarks.paper.figures import active_nodes, class_routing, error_time, relaxation_gap, solver
from benchmarks.paper.figures.glass import TYPES, glass
from benchmarks.paper.figures.making import FIGURES, text_of
from benchmarks.paper.figures.numbers import Numbers
from prunus.cli.demo import read_glass

STORED = sorted(path.stem for path in RESULTS.glob("*.md") if path.stem in FIGURES)


@pytest.fixture(autouse=True)
def _threads() -> Any:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def tabular_cells(tmp_path: Path) -> Path:
    rows = [("Year", "Ours", 1, 50.0, 80.0), ("Year", "CART", 1, 3.0, 96.0), ("Year", "CART", 2, 5.0, 94.0)]
    table = pd.DataFrame(rows, columns=error_time.COLUMNS).astype(object)
    table.loc[len(table)] = ["Year", "ANT", 1, "OOT", None]
    table.to_csv(tmp_path / "regression_cells.csv", index=False)
    return tmp_path


def test_a_part_that_is_stored_is_not_asked_for_again(tmp_path: Path) -> None:
    parts = [{"lam": 0.1, "seed": 1}, {"lam": 0.1, "seed": 2}]
    Numbers(tmp_path / "a.csv").add(parts[0], [{"value": 1 / 3}, {"value": 2.0}])
    again = Numbers(tmp_path / "a.csv")
    assert list(again.missing(parts)) == parts[1:]
    again.add(parts[1], [{"value": 3.0}])
    assert again.table()["seed"].tolist() == [1, 1, 2]
    assert list(again.missing(parts)) == []


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_of_the_table_can_be_made(name: str) -> None:
    figure = FIGURES[name].load()
    assert all(callable(part) for part in (figure.compute, figure.draw, figure.describe))


@pytest.mark.parametrize("name", STORED)
def test_the_stored_text_is_that_of_the_stored_numbers(name: str) -> None:
    table = Numbers(RESULTS / f"{name}.csv").table()
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == text_of(name, table)


def test_a_figure_is_numbers_a_picture_and_a_text(tmp_path: Path) -> None:
    assert main(["relaxation-z", "--out", str(tmp_path)]) == 0
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".md", ".png"]
    assert (tmp_path / "relaxation-z.png").read_bytes().startswith(b"\x89PNG")
    assert "(relaxation-z.png)" in (tmp_path / "relaxation-z.md").read_text()


def test_numbers_are_computed_anew_only_if_removed(tmp_path: Path) -> None:
    main(["relaxation-z", "--out", str(tmp_path)])
    path = tmp_path / "relaxation-z.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:300]) + "\n")
    main(["relaxation-z", "--out", str(tmp_path)])
    assert len(path.read_text().splitlines()) == 300
    path.unlink()
    main(["relaxation-z", "--out", str(tmp_path)])
    assert path.read_text().splitlines() == lines


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["relaxation"])
    assert "relaxation-gap" in capsys.readouterr().err


def test_relaxed_and_integer_solutions_meet_as_lam_grows() -> None:
    near, far = (relaxation_gap.gaps(lam, seed=3) for lam in (1e4, 3.0))
    assert near["a"] < 0.01 < 0.1 < far["a"]
    assert near["z"] < 0.01 < 0.1 < far["z"]


@pytest.mark.parametrize("lam", [0.1, 1.0, 5.0, 20.0])
def test_masses_rounded_at_one_half_are_the_integer_solution(lam: float) -> None:
    assert sum(relaxation_gap.gaps(lam, seed)["rounded"] for seed in range(30)) == 0


def test_glass_is_the_same_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked = Source("https://example.org", "CC BY 4.0", (DataFile("glass.data"),))
    monkeypatch.setattr("benchmarks.harness.sets.loading.SOURCES", {"Glass": unchecked})
    x, y = read_glass()
    types_of = {label: number for number, label in TYPES.items()}
    file = tmp_path / "raw" / "glass.data"
    file.parent.mkdir()
    x.assign(Type=[types_of[label] for label in y]).reset_index(names="Id").to_csv(file, header=False, index=False)
    read, types = glass(tmp_path)
    pd.testing.assert_frame_equal(read, x)
    assert types.tolist() == y.tolist()


def test_batches_leave_fewer_nodes_active_than_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(active_nodes, "SEEDS", (0,))
    monkeypatch.setattr(active_nodes, "OPTIONS", active_nodes.OPTIONS | {"max_epochs": 2})
    numbers = Numbers(tmp_path / "active.csv")
    active_nodes.compute(numbers)
    table = numbers.table()
    assert table["epoch"].tolist() == [1, 2]
    assert (table["batches"] < table["all_rows"]).all()


def test_classes_are_drawn_in_the_tree_with_the_least_error(tmp_path: Path) -> None:
    rows = [
        {"pruning_strength": lam, "valid_error": error, "type": label, "node": node, "mass": 1.0, "percent": percent}
        for lam, error, percent in ((1.0, 0.5, 10.0), (10.0, 0.2, 12.5))
        for label in class_routing.TYPES
        for node in range(15)
    ]
    table = pd.DataFrame(rows)
    class_routing.draw(table, tmp_path / "classes.png")
    text = class_routing.describe(table)
    assert "0.5 for 1" in text.replace("0.500", "0.5")
    assert text.count("| 100 % |") == 6


def test_a_solver_without_a_number_shows_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(solver, "BENCHMARK", tmp_path / "not there")
    rows = [
        {"contender": name, "n": n, "depth": depth, "status": "ok", "ms": 1.0, "memory_mb": 1.0, "max_da": 0.0}
        for n, depth in SIZES
        for name in (*SOLVERS, TRAVERSE)
    ]
    table = pd.DataFrame(rows).assign(busy=False, threads=2, cores=2, cpu="a CPU")
    slow = (table["contender"] == "cvxpylayers") & (table["n"] == 1000)
    table.loc[slow, ["status", "ms", "memory_mb", "max_da"]] = ["OOT", None, None, None]
    assert "| 1000 | 3 | 1 | 1 | OOT | 1 | 1 | - | 1 | OOT | OOT | 0 |" in solver.describe(table)


def test_error_over_time_needs_the_cells_of_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["error-time", "--out", str(tmp_path)]) == 1
    assert "python -m benchmarks.paper classification regression" in capsys.readouterr().err


def test_error_over_time_leaves_out_what_has_no_result(tabular_cells: Path) -> None:
    assert main(["error-time", "--out", str(tabular_cells)]) == 0
    text = (tabular_cells / "error-time.md").read_text()
    assert "| Year | CART | 2 | 95 | 4 |\n| Year | Ours | 1 | 80 | 50 |\n\n" in text
    assert "| Year | CART | 96 | 23 |" in text  # the paper's
    assert (tabular_cells / "error-time.png").exists()


def test_error_over_time_follows_the_tables(tabular_cells: Path) -> None:
    main(["error-time", "--out", str(tabular_cells)])
    with (tabular_cells / "regression_cells.csv").open("a") as file:
        file.write("Year,ANT,1,900,78\n")
    main(["error-time", "--out", str(tabular_cells)])
    assert "| Year | ANT | 1 | 78 | 900 |" in (tabular_cells / "error-time.md").read_text()


def test_a_method_has_one_colour_in_all_panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: found.append(figure))
    rows = [("a", "CART", 1, 1.0, 0.3), ("a", "Ours", 1, 2.0, 0.2), ("b", "Ours", 1, 3.0, 0.1)]
    error_time.draw(pd.DataFrame(rows, columns=error_time.COLUMNS), tmp_path / "drawn.png")
    looks = [
        {points.get_label(): (points[0].get_color(), points[0].get_marker()) for points in ax.containers}
        for ax in found[0].axes
    ]
    assert looks[0]["Ours"] == looks[1]["Ours"] != looks[0]["CART"]
