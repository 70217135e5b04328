"""The description of a readable tree; its numbers are those of the record."""

from collections.abc import Sequence
from dataclasses import replace

from prunus.describe.record import ColumnSplit, Formula, NodeSummary, SearchedTree, SplitWeight
from prunus.estimators.readable import ReadableTree
from prunus.estimators.readable_importances import term_spread
from prunus.search.columns import KnownColumn
from prunus.search.predict import has_scores
from prunus.search.questions import Question
from prunus.search.record import Leaf, NodeRows, ReadableRecord, Split, Term
from prunus.search.words import term_label
from prunus.targets import remarks

__all__ = ["describe_searched"]


def describe_searched(
    estimator: ReadableTree, features: Sequence[str] | None, names: Sequence[str] | None
) -> SearchedTree:
    """The description of a readable tree, with these names for the columns of the table and for the classes."""
    record, target, columns = estimator.record_, estimator.target_, estimator.columns_
    if features is not None:
        columns = tuple(replace(column, name=name) for column, name in zip(columns, features, strict=True))
    outputs = tuple(names) if names is not None else target.output_names(None)
    nodes = sorted((*record.splits, *record.leaves))
    has_terms = any(formula.terms for leaf in record.leaves.values() for formula in leaf.outputs)
    is_classes = target.is_classes
    return SearchedTree(
        kind=type(estimator).__name__,
        leaf="linear" if has_terms else "constant",
        depth=estimator.get_depth(),
        n_leaves=record.n_leaves,
        n_nodes=len(nodes),
        n_active=len(nodes),
        n_parameters=_n_numbers(record),
        classes=target.classes,
        outputs=outputs,
        nodes=tuple(_node(record, columns, outputs, t, is_classes=is_classes) for t in nodes),
        agreement=None,
        warning=remarks(target.task, None, all_pruned=not record.splits),
        routing="hard",
        link=target.link.name,
        exact=True,
        target=target,
        model=record,
        known=columns,
        apply=estimator.apply,
    )


def _n_numbers(record: ReadableRecord) -> int:
    """The numbers of splits and leaves."""
    of_splits = sum(len(split.terms) + 1 for split in record.splits.values())
    return of_splits + sum(1 + len(formula.terms) for leaf in record.leaves.values() for formula in leaf.outputs)


def _node(
    record: ReadableRecord, columns: Sequence[KnownColumn], outputs: tuple[str, ...], t: int, *, is_classes: bool
) -> NodeSummary:
    rows = record.rows.get(t, NodeRows(1.0, (0.0,) * len(outputs), () if is_classes else (0.0,) * len(outputs)))
    whole = record.rows[0].count if 0 in record.rows else 1.0
    node = NodeSummary(
        node=t,
        depth=(t + 1).bit_length() - 1,
        share=rows.count / whole if whole > 0 else 0.0,
        mass=None,
        is_leaf=t in record.leaves,
        distribution=rows.mean,
        spread=rows.spread,
    )
    if t in record.splits:
        return _with_split(node, record, columns)
    return _with_outputs(node, record.leaves[t], columns, outputs, is_classes=is_classes)


def _with_split(node: NodeSummary, record: ReadableRecord, columns: Sequence[KnownColumn]) -> NodeSummary:
    split = record.splits[node.node]
    own = tuple(columns[term.feature] for term in split.terms)
    missing = tuple(
        column.missing > 0 and _missing_arrive(record, node.node, term)
        for term, column in zip(split.terms, own, strict=True)
    )
    weights = tuple(_weight(term, column) for term, column in zip(split.terms, own, strict=True))
    only = _column(split, own[0], missing=missing[0]) if len(own) == 1 else None
    return replace(node, split=weights, threshold=split.threshold, column=only, question=Question(split, own, missing))


def _missing_arrive(record: ReadableRecord, t: int, term: Term) -> bool:
    """Whether rows without a value of a term's column arrive at a node, or a split above sends them elsewhere."""
    while t > 0:
        parent, is_left = (t - 1) // 2, t % 2 == 1
        side = _missing_side(record.splits[parent], term)
        if side is not None and side is not is_left:
            return False
        t = parent
    return True


def _missing_side(split: Split, term: Term) -> bool | None:
    """Whether a split sends missing values of a term's column to the left; None if that depends on other columns."""
    own = [other for other in split.terms if other.feature == term.feature]
    if any(other.levels is None for other in own):
        return split.missing_left
    if own and len(split.terms) == 1:
        return own[0].weight * own[0].missing < split.threshold
    return None


def _weight(term: Term, column: KnownColumn) -> SplitWeight:
    label = term_label(term, column.name, column.kind)
    return SplitWeight(label, term.weight, term.weight * term_spread(term, column), feature=term.feature)


def _column(split: Split, column: KnownColumn, *, missing: bool) -> ColumnSplit | None:
    """A split of one column, told by thresholds or levels; None if the weight is not 1."""
    (term,) = split.terms
    if term.levels is None:
        if term.weight != 1 or column.kind == "boolean":
            return None if term.weight != 1 else _of_boolean(split, column, missing=missing)
        thresholds = (split.threshold,) if abs(split.threshold) < float("inf") else ()
        low_left = split.threshold > 0 if not thresholds else True
        return ColumnSplit(
            column.name,
            column.kind,
            thresholds,
            low_left,
            missing_left=split.missing_left if missing else None,
            exact=True,
        )
    into, out = term.weight < split.threshold, split.threshold > 0
    others = tuple(level for level in column.levels if level not in term.levels)
    left = (term.levels if into else ()) + (others if out else ())
    right = (() if into else term.levels) + (() if out else others)
    return ColumnSplit(
        column.name,
        "category",
        left=left,
        right=right,
        other_left=out,
        missing_left=(into if term.missing else out) if missing else None,
        exact=True,
    )


def _of_boolean(split: Split, column: KnownColumn, *, missing: bool) -> ColumnSplit:
    sides = {name: value < split.threshold for name, value in (("false", 0.0), ("true", 1.0))}
    return ColumnSplit(
        column.name,
        "boolean",
        left=tuple(name for name, left in sides.items() if left),
        right=tuple(name for name, left in sides.items() if not left),
        missing_left=split.missing_left if missing else None,
        exact=True,
    )


def _with_outputs(
    node: NodeSummary, leaf: Leaf, columns: Sequence[KnownColumn], outputs: tuple[str, ...], *, is_classes: bool
) -> NodeSummary:
    scored = has_scores(leaf, len(outputs)) if is_classes else any(formula.terms for formula in leaf.outputs)
    if not scored:
        return replace(node, value=tuple(formula.constant for formula in leaf.outputs))
    names = list(outputs)
    if is_classes:
        names = [f"log odds of {outputs[1]}"] if len(leaf.outputs) == 1 else [f"score of {name}" for name in outputs]
    formulas = []
    for name, formula in zip(names, leaf.outputs, strict=True):
        weights = tuple(_formula_weight(term, columns[term.feature]) for term in formula.terms)
        formulas.append(Formula(name, formula.constant, weights, formula.low, formula.high, exact=True))
    return replace(node, formulas=tuple(formulas))


def _formula_weight(term: Term, column: KnownColumn) -> SplitWeight:
    missing = term.missing if term.levels is None and column.missing > 0 else None
    return replace(_weight(term, column), missing=missing)
