"""The paper's table of hierarchical clustering, from the cells of the benchmark of clustering."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import cluster_cells
from benchmarks.harness.cells import CellStore
from benchmarks.harness.cluster_cells import ClusterRow, ClusterStanding, run_missing
from benchmarks.harness.records import read_records, write_records
from benchmarks.harness.reports import markdown_table

__all__ = ["CELLS", "PAPER", "make", "standings", "text_of"]

CELLS = Path(__file__).parents[2] / "results" / "cluster_cells.csv"
"""The cells that `make bench-cluster` stores."""
SETS = {"glass": "Glass", "covtype": "Covtype"}
"""Names in the benchmark and in the paper."""
LINES = {
    "prunus paper": "Ours, as the paper does it",
    "prunus": "Ours, all features",
    "gHHC": "gHHC",
    "HKMeans": "HKMeans",
    "BIRCH": "BIRCH",
}
"""Methods of the benchmark, and their names in the table."""
PAPER = {
    ("prunus paper", "glass"): "0.468 ± 0.028",
    ("prunus paper", "covtype"): "0.459 ± 0.008",
    ("gHHC", "glass"): "0.463 ± 0.002",
    ("gHHC", "covtype"): "0.444 ± 0.005",
    ("HKMeans", "glass"): "0.508 ± 0.008",
    ("HKMeans", "covtype"): "0.440 ± 0.001",
    ("BIRCH", "glass"): "0.429 ± 0.013",
    ("BIRCH", "covtype"): "0.440 ± 0.002",
}


def make(data: Path, out: Path) -> None:
    """Run the cells that the benchmark lacks, then write what the paper has of them, as CSV and Markdown."""
    store: CellStore[ClusterRow] = CellStore(ClusterRow, CELLS)
    run_missing(store, data)
    numbers = out / "clustering.csv"
    write_records(numbers, standings(list(store.rows.values())))
    numbers.with_suffix(".md").write_text(text_of(read_records(numbers, ClusterStanding)), encoding="utf-8")


def standings(rows: Sequence[ClusterRow]) -> list[ClusterStanding]:
    """Means and deviations of what the paper's table has."""
    return [stand for stand in cluster_cells.standings(rows) if stand.set in SETS and stand.method in LINES]


def text_of(stands: Sequence[ClusterStanding]) -> str:
    """The table, and what was done."""
    found = {(stand.method, stand.set): stand for stand in stands}
    best = {name: _limit([stand for stand in stands if stand.set == name]) for name in SETS}
    header = ["method", *(text for name in SETS.values() for text in (name, f"{name}, paper"))]
    lines = []
    for method, line in LINES.items():
        cells = [(_purity(found.get((method, name)), best[name]), PAPER.get((method, name), "")) for name in SETS]
        lines.append([line, *(text for pair in cells for text in pair)])
    return f"# Hierarchical clustering\n\n{markdown_table(header, lines)}\n\n{NOTES}"


def _limit(stands: Sequence[ClusterStanding]) -> float:
    """The least purity that counts as the best: one deviation below it."""
    best = max((stand for stand in stands if stand.test is not None), key=lambda stand: stand.test or 0.0)
    return (best.test or 0.0) - (best.test_std or 0.0)


def _purity(stand: ClusterStanding | None, limit: float) -> str:
    if stand is None or stand.test is None:
        return "-" if stand is None else stand.status.partition(":")[0]
    text = f"{stand.test:.3f} ± {stand.test_std or 0.0:.3f}"
    return f"**{text}**" if stand.test >= limit else text


NOTES = """Dendrogram purity of the test part, mean and deviation over four seeds; bold is what is within one deviation
of the best. Written by `python -m benchmarks.paper clustering` from the cells of `make bench-cluster`, whose report,
`benchmarks/results/cluster.md`, has more sets, the purity of all rows, times, and how the methods were run.

The paper takes the numbers of its rivals from Monath and others (2019); ours were run here, on the same parts as our
trees. "As the paper does it" regresses two features, chooses depth and pruning by the error on validation rows, and has
12 trials instead of 100: on Covtype it reproduces the paper, on Glass, whose validation part has 43 rows, it does not.
"All features" is what `ArgminTreeClusterer` does by default.
"""
