"""Trees as SQL statements."""

from collections.abc import Iterable, Sequence
from typing import Any

from prunus import __version__
from prunus.describe.numbers import percent
from prunus.describe.read import describe
from prunus.errors import InputTypeError, InputValueError
from prunus.render.lowering import read_program
from prunus.render.program import (
    LARGEST,
    Below,
    Branch,
    Choice,
    CodePrinter,
    Condition,
    End,
    Formula,
    InRanges,
    Label,
    Limited,
    Names,
    Output,
    Program,
    ends,
    sum_lines,
)
from prunus.render.sql_words import (
    READERS,
    UNITS,
    calendar_steps,
    double,
    in_ranges,
    is_level,
    largest,
    listed,
    literal,
    named,
    quoted,
)

__all__ = ["export_sql"]

SIDES = ("lowest", "highest")
"""Names of the limits of an output."""


def export_sql(
    estimator: Any,
    table: str | Sequence[str],
    *,
    copy: str | Iterable[str] = (),
    hard: bool = False,
    proba: bool = False,
) -> str:
    """Write a fitted tree as a SELECT statement, which predicts the rows of a table of a database.

    The result has one row for each row of the table: first the columns of `copy`, then "prediction" (with several
    outputs "prediction 0", "prediction 1" and so on), or "cluster". With `proba` a column "probability LABEL" for each
    class follows. Databases do not promise an order of rows: copy a key to know which is which.

    NULL is a missing value. The table must have the columns that the tree uses, with the names that they had in `fit`
    ("x0", "x1" and so on if they had none). Booleans are booleans, or 0 and 1. Dates are numbers of seconds since 1970
    in UTC, and durations are seconds; where a column is a timestamp, replace the expression that reads it in the first
    step by what your database has for that, such as ``EXTRACT(EPOCH FROM t."since")``.

    The statement computes in double precision. That of a readable tree has the numbers that are printed elsewhere, and
    gives the labels and values of `predict` themselves. The numbers of other trees differ from those of `predict` by
    rounding, and a row that is within rounding of a threshold may take the other path. The statement is made for SQLite
    3.35, DuckDB and PostgreSQL 12, and newer ones. Beyond standard SQL it uses the word ``MATERIALIZED``, which asks to
    compute a step once and may be deleted, and the function ``exp``, but only for models in leaves, if probabilities or
    the means of a loss such as "poisson" are wanted. Weekdays, months and hours of dates are computed from seconds,
    with the function ``floor``.

    Parameters
    ----------
    estimator : tree of prunus
        The fitted estimator: a readable tree, or another tree with linear splits and with constant, linear or additive
        leaves.
    table : str or sequence of str
        The table. Dots part a schema from a table, as in "sales.houses"; in a list of names they have no meaning.
    copy : str or iterable of str, optional
        Columns of the table that are part of the result, such as a key.
    hard : bool, default=False
        Whether a tree that was not fitted with ``routing="hard"`` is written with the predictions of
        ``predict(X, hard=True)``. Without it such a tree is an error, since its predictions do not follow one path;
        clusters always do.
    proba : bool, default=False
        Whether the result has the probabilities of the classes.

    Returns
    -------
    str
        The statement, without a semicolon at its end.

    Examples
    --------
    >>> from prunus import ArgminTreeRegressor
    >>> tree = ArgminTreeRegressor(depth=1, max_epochs=1, routing="hard", random_state=0)
    >>> _ = tree.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> import sqlite3
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE sizes (x0 REAL)")
    >>> _ = database.execute("INSERT INTO sizes VALUES (0.5)")
    >>> ((value,),) = database.execute(export_sql(tree, "sizes"))
    >>> bool(abs(value - tree.predict([[0.5]])[0]) < 1e-6)
    True
    """
    program = read_program(describe(estimator), "export_sql", hard=hard, proba=proba)
    parts, copied = _table_names(table), _copied(copy)
    return _Printer(program, parts, copied).statement()


def _table_names(table: Any) -> list[str]:
    """The parts of the name of a table."""
    if isinstance(table, str):
        parts: list[Any] = table.split(".")
    elif isinstance(table, Sequence):
        parts = list(table)
    else:
        raise InputTypeError(f"table must be the name of a table, got {table!r}")
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise InputValueError(f"table must be the name of a table, got {table!r}")
    return parts


def _copied(copy: Any) -> list[str]:
    names = [copy] if isinstance(copy, str) else list(copy) if isinstance(copy, Iterable) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise InputTypeError(f"copy must be a list of names of columns, got {copy!r}")
    return list(dict.fromkeys(names))


class _Printer(CodePrinter):
    """Writes a program as one statement of several steps; each step adds columns to those of the step before."""

    def __init__(self, program: Program, table: list[str], copied: list[str]) -> None:
        self.table, self.copied = table, copied
        self.results = _result_names(program)
        taken = {name.casefold() for name in copied} & {name.casefold() for name in self.results}
        if taken:
            raise InputValueError(f"copy must name columns other than those with predictions, got {taken.pop()!r}")
        self.values = Names(str, (*copied, *self.results, ""))
        super().__init__(program, self._new_name)
        self.step_names = Names(str, (*table, "t"))
        self.steps: list[list[str]] = []
        self.source = ".".join(map(quoted, table)) + " AS t"

    def statement(self) -> str:
        """All steps, the last of which selects the results."""
        program = self.program
        copied = [f"t.{quoted(name)} AS {quoted(name)}" for name in self.copied]
        columns = [f"{READERS[c.kind].format('t.' + quoted(c.name))} AS {self.names[c]}" for c in program.columns]
        notes = [""] * len(copied) + [UNITS.get(column.kind, "") for column in program.columns]
        self._step("inputs", [[line] for line in [*copied, *columns] or ["1 AS one_row"]], notes, once=False)
        if program.calendars:
            for name, found in calendar_steps(program.calendars, self.names.__getitem__, self._new_name):
                self._step(name, found)
        if program.limited:
            self._step("limited", [[f"{self._limited(v)} AS {self.names[v]}"] for v in program.limited], once=False)
        if program.effects:
            self._step("effects", [named(self.sum(s.formula), self.names[s]) for s in program.effects])
        if program.shared:
            self._step("shared", [named(self.sum(s.formula), self.names[s]) for s in program.shared])
        results = self._results()
        lines = [f"-- {program.kind} of prunus {__version__}", "WITH"]
        for i, step in enumerate(self.steps):
            lines += [*step[:-1], step[-1] + ("," if i + 1 < len(self.steps) else "")]
        selected = [[quoted(name)] for name in self.copied]
        selected += [named(result, quoted(name)) for result, name in zip(results, self.results, strict=True)]
        return "\n".join([*lines, "SELECT", *listed(selected, "    "), f"FROM {self.source}"]) + "\n"

    def _new_name(self, text: str) -> str:
        """A name of a value that resembles the text, in quotes."""
        return quoted(self.values.new(text))

    def _step(self, name: str, columns: list[list[str]], notes: Sequence[str] = (), *, once: bool = True) -> None:
        """Add a step that selects these columns, after the first step beside those of the step before.

        Databases put the expressions of a step in place of its columns. Where these are used often, as those of most
        steps are, they are asked to compute them once.
        """
        step = quoted(self.step_names.new(name))
        select = "    SELECT *," if self.steps else "    SELECT"
        start = f"{step} AS MATERIALIZED (" if once else f"{step} AS ("
        self.steps.append([start, select, *listed(columns, " " * 8, notes), f"    FROM {self.source}", ")"])
        self.source = step

    def _results(self) -> list[list[str]]:
        """The expressions of the results; steps before them compute the leaf and its outputs if that is needed."""
        program = self.program
        found = list(ends(program.root))
        plain = program.finish == "values" and not any(_is_limited(value) for end in found for value in end.values)
        if plain and len(found[0].values) == 1:
            return [self._typed(found, 0, self._tree(program.root, 0))]
        leaf = quoted(self.values.new("leaf"))
        self._step("leaves", [named(self._tree(program.root, None), leaf)])
        by_node = {end.node: end for end in found}
        if plain:
            return [self._typed(found, j, self._by_leaf(leaf, by_node, j)) for j in range(len(found[0].values))]
        with_outputs = {t: end for t, end in by_node.items() if isinstance(end.values[0], Output)}
        results = self._finished(self._outputs(leaf, with_outputs))
        constant = {t: end for t, end in by_node.items() if t not in with_outputs}
        return [self._or_constant(leaf, constant, j, lines) for j, lines in enumerate(results)]

    def _or_constant(self, leaf: str, constant: dict[int, End], j: int, lines: list[str]) -> list[str]:
        """Result j: that of the leaf if it is constant, else what these lines compute."""
        if not constant:
            return lines
        cases = [f"    WHEN {t} THEN {self._at_end(end.values[j])[0]}" for t, end in sorted(constant.items())]
        return [f"CASE {leaf}", *cases, "    ELSE", *(f"        {line}" for line in lines), "END"]

    def _typed(self, found: list[End], j: int, lines: list[str]) -> list[str]:
        """Result j in double precision if it is a number: PostgreSQL takes numbers for decimals."""
        if not any(isinstance(end.values[j], float) for end in found):
            return lines
        if len(lines) == 1:
            return [f"CAST({lines[0]} AS DOUBLE PRECISION)"]
        return ["CAST(", *(f"    {line}" for line in lines), "AS DOUBLE PRECISION)"]

    def _outputs(self, leaf: str, by_node: dict[int, End]) -> list[str]:
        """Names of the outputs, which steps compute and limit."""
        k = len(next(iter(by_node.values())).values)
        numbers = [""] if k == 1 else [f" {j}" for j in range(k)]
        names = [quoted(self.values.new(f"output{number}")) for number in numbers]
        columns = [named(self._by_leaf(leaf, by_node, j), names[j]) for j in range(k)]
        limited: list[list[str]] = []
        within = list(names)
        for j, name in enumerate(names):
            values = {t: end.values[j] for t, end in by_node.items()}
            low, high = (self._limit(leaf, values, side, f"{side}{numbers[j]}", columns) for side in SIDES)
            cases = [f"WHEN {name} < {low} THEN {low}"] * (low is not None)
            cases += [f"WHEN {name} > {high} THEN {high}"] * (high is not None)
            if cases:
                within[j] = quoted(self.values.new(f"output{numbers[j]} limited"))
                limited.append(named([f"CASE {' '.join(cases)} ELSE {name} END"], within[j]))
        self._step("outputs", columns)
        if limited:
            self._step("limited outputs", limited)
        return within

    def _limit(
        self, leaf: str, outputs: dict[int, Output | Label], side: str, label: str, columns: list[list[str]]
    ) -> str | None:
        """The limit of an output: a number if all leaves have the same, else a column that is added to these.

        A leaf without one has NULL in this column, which no number is below or above.
        """
        limits = {t: _limits(output)[side] for t, output in outputs.items()}
        values = {t: double(limit) for t, limit in limits.items() if limit is not None}
        if not values:
            return None
        if len(values) == len(outputs) and len(set(values.values())) == 1:
            return next(iter(values.values()))
        name = quoted(self.values.new(label))
        cases = " ".join(f"WHEN {t} THEN {value}" for t, value in sorted(values.items()))
        columns.append([f"CASE {leaf} {cases} END AS {name}"])
        return name

    def _finished(self, outputs: list[str]) -> list[list[str]]:
        """Results that are computed from the outputs of a row."""
        program, labels = self.program, [literal(label) for label in self.program.labels]
        if program.finish == "values":
            return [[name] for name in outputs]
        if program.finish == "log":
            return [[f"{mean!r} * exp({name})"] for mean, name in zip(program.means, outputs, strict=True)]
        if program.finish == "logit":
            label = f"CASE WHEN {outputs[0]} > 0 THEN {labels[1]} ELSE {labels[0]} END"
            if not program.proba:
                return [[label]]
            return [[label], [f"1 / (1 + exp({outputs[0]}))"], [f"1 / (1 + exp(-{outputs[0]}))"]]
        label = largest(outputs, labels)
        return [[label], *self._probabilities(outputs)] if program.proba else [[label]]

    def _probabilities(self, outputs: list[str]) -> list[list[str]]:
        """Exponentials of the scores, relative to the largest one, and their shares."""
        best = quoted(self.values.new("best output"))
        self._step("best", [[f"{largest(outputs, outputs)} AS {best}"]])
        weights = [quoted(self.values.new(f"weight {j}")) for j in range(len(outputs))]
        exps = [
            f"CASE WHEN {name} - {best} < {-LARGEST!r} THEN 0e0 ELSE exp({name} - {best}) END AS {weight}"
            for name, weight in zip(outputs, weights, strict=True)
        ]
        self._step("weights", [[text] for text in exps])
        total = quoted(self.values.new("total weight"))
        self._step("totals", [named(sum_lines([(1.0, weight) for weight in weights], repr), total)])
        return [[f"{weight} / {total}"] for weight in weights]

    def _tree(self, part: Branch | End, j: int | None) -> list[str]:
        """The nested conditions, with result j at the ends, or with the node if j is None."""
        if isinstance(part, End):
            return [str(part.node)] if j is None else self._at_end(part.values[j])
        lines = self._condition(part.condition)
        when = [f"    WHEN {lines[0]} THEN"]
        if len(lines) > 1:
            when = ["    WHEN", *(f"        {line}" for line in lines), "    THEN"]
        left, right = ([f"        {line}" for line in self._side(side, j)] for side in (part.left, part.right))
        return ["CASE", *when, *left, "    ELSE", *right, "END"]

    def _side(self, part: Branch | End, j: int | None) -> list[str]:
        *first, last = self._tree(part, j)
        return [*first, f"{last}  -- {percent(part.share)} of the rows" if isinstance(part, End) else last]

    def _at_end(self, value: Output | Label) -> list[str]:
        return self.sum(value.formula) if isinstance(value, Output) else [literal(value)]

    def _by_leaf(self, leaf: str, by_node: dict[int, End], j: int) -> list[str]:
        """Output or result j of the leaf of a row."""
        ordered = sorted(by_node.items())
        if len(ordered) == 1:
            return self._at_end(ordered[0][1].values[j])
        lines = [f"CASE {leaf}"]
        for t, end in ordered:
            value = self._at_end(end.values[j])
            if len(value) == 1:
                lines.append(f"    WHEN {t} THEN {value[0]}")
            else:
                lines += [f"    WHEN {t} THEN", *(f"        {line}" for line in value)]
        return [*lines, "END"]

    def _condition(self, condition: Condition) -> list[str]:
        if isinstance(condition, Below):
            *first, last = self.sum(Formula(0.0, condition.formula.terms))
            missing = [f" OR {self.names[column]} IS NULL" for column in condition.columns if condition.missing]
            return [*first, f"{last} < {0.0 - condition.formula.constant!r}{''.join(missing)}"]
        name = self.names[condition.column]
        found = in_ranges(name, condition) if isinstance(condition, InRanges) else is_level(name, condition)
        if found == "":
            return [f"{name} IS NULL" if condition.missing else f"{name} IS NOT NULL"]
        return [f"{found} OR {name} IS NULL" if condition.missing else found]  # if NULL is compared, ELSE follows

    def _limited(self, v: Limited) -> str:
        name = self.names[v.column]
        if v.center != 0 or v.scale != 1:
            name = f"({name} - {v.center!r}) / {v.scale!r}"
        low, high, missing = map(double, (v.low, v.high, v.missing))
        return (
            f"CASE WHEN {self.names[v.column]} IS NULL THEN {missing} WHEN {name} < {low} THEN {low} "
            f"WHEN {name} > {high} THEN {high} ELSE {name} END"
        )

    def sum(self, formula: Formula) -> list[str]:
        return super().sum(formula) if formula.terms else [double(formula.constant)]

    def filled(self, name: str, missing: float) -> str:
        return f"COALESCE({name}, {double(missing)})"

    def choice(self, term: Choice) -> str:
        name = self.names[term.column]
        cases = [f"WHEN {name} = {literal(level)} THEN {double(weight)}" for level, weight in term.levels]
        if term.missing != term.other:
            cases.append(f"WHEN {name} IS NULL THEN {double(term.missing)}")
        return f"CASE {' '.join(cases)} ELSE {double(term.other)} END" if cases else double(term.other)


def _result_names(program: Program) -> list[str]:
    if program.cluster:
        return ["cluster"]
    if program.labels:
        return ["prediction", *(f"probability {label}" for label in program.labels if program.proba)]
    k = len(next(ends(program.root)).values)
    return ["prediction"] if k == 1 else [f"prediction {j}" for j in range(k)]


def _limits(value: Output | Label) -> dict[str, float | None]:
    low, high = (value.low, value.high) if isinstance(value, Output) else (None, None)
    return dict(zip(SIDES, (low, high), strict=True))


def _is_limited(value: Output | Label) -> bool:
    return any(limit is not None for limit in _limits(value).values())
