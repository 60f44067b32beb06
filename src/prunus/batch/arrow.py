"""Pages in Arrow tables: the functions that Ray, Spark, Dask and others call with their own batches.

A table has a row for each page, in the columns ``html`` (or ``content``, ``markdown``, ``text``, ``path``, or ``url``
alone, which is fetched), and optionally ``url``, ``id``, ``question``, ``media_type`` and ``charset``. The result has
as many rows in the same order, with the columns of :func:`schema_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ..core.options import Options
from ..core.settings import Settings, load_settings
from ..core.types import OutputFormat
from .read import page_columns, parquet_packages, row_of, rows_of
from .work import CITED, Task, Work

if TYPE_CHECKING:
    import pyarrow as pa

_SLICE: Final = 64
"""Rows that are Python objects at once."""


class Mapper:
    """Does a task with tables of pages; its engines are made at its first call, once a worker.

    An instance can be sent to other processes. On Ray::

        dataset.map_batches(Mapper, fn_constructor_args=(Task("prune", "When did it open?"),),
                            batch_format="pyarrow", compute=ray.data.ActorPoolStrategy(size=4))

    On Spark ``frame.mapInArrow(Mapper(task).batches, schema)``, on Dask ``frame.map_partitions(Mapper(task).frame)``.

    :param settings: by default those of ``prunus.toml`` and the environment of the process that does the work.
    """

    def __init__(self, task: Task, settings: Settings | None = None) -> None:
        self.task, self.settings = task, settings
        self._work: Work | None = None

    def __getstate__(self) -> tuple[Task, Settings | None]:
        """Return what another process needs: engines are made anew there."""
        return self.task, self.settings

    def __setstate__(self, state: tuple[Task, Settings | None]) -> None:
        self.task, self.settings = state
        self._work = None

    def __call__(self, table: pa.Table | pa.RecordBatch) -> pa.Table:
        """Return the records of a table of pages, one a row, in the same order.

        :raises BadInput: no column holds pages, or an engine's name is unknown. A page that fails has its
            error in its record.
        """
        arrow, _ = parquet_packages()
        columns = page_columns(table.schema.names, "table")
        if self._work is None:
            self._work = Work(self.task, self.settings or load_settings())
        table = table.select(columns)
        tables = [table_of([], self.task)]
        for start in range(0, table.num_rows, _SLICE):
            values = rows_of(table.slice(start, _SLICE))
            tables.append(table_of([self._record(start + at, row) for at, row in enumerate(values, 1)], self.task))
        return arrow.concat_tables(tables)

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the records of each batch, as Spark's ``mapInArrow`` wants them."""
        for batch in batches:
            yield from self(batch).to_batches()

    def frame(self, frame: Any) -> Any:
        """Return the records of a pandas DataFrame of pages, as Dask's ``map_partitions`` wants them."""
        arrow, _ = parquet_packages()
        return self(arrow.Table.from_pandas(frame, preserve_index=False)).to_pandas()

    def frames(self, frames: Iterable[Any]) -> Iterator[Any]:
        """Yield the records of each pandas DataFrame, as Spark's ``mapInPandas`` wants them."""
        yield from map(self.frame, frames)

    def _record(self, number: int, values: Mapping[str, Any]) -> dict[str, Any]:
        work = cast(Work, self._work)
        return work.record(row_of(number, values, f"row {number}", work.settings))


def clean_arrow(table: pa.Table, format: OutputFormat = "html", *, main: bool = False) -> pa.Table:
    """Clean a table of pages; see :class:`Mapper`, whose engines serve many tables."""
    return Mapper(Task("clean", format=format, main=main))(table)


def prune_arrow(
    table: pa.Table, question: str = "", budget: int = 0, format: OutputFormat = "html", options: Options | None = None
) -> pa.Table:
    """Keep the evidence of each page for a question; see :class:`Mapper`.

    :param question: for the pages without a question of their own.
    :param budget: tokens of each page's evidence; 0: that of the settings.
    """
    return Mapper(Task("prune", question, budget, format, options=options or Options()))(table)


def ask_arrow(table: pa.Table, question: str = "", budget: int = 0, options: Options | None = None) -> pa.Table:
    """Answer a question from each page alone; see :class:`Mapper`.

    :param question: for the pages without a question of their own.
    :param budget: tokens of each page's evidence; 0: that of the settings.
    """
    return Mapper(Task("ask", question, budget, options=options or Options()))(table)


def schema_of(task: Task, located: bool = False) -> pa.Schema:
    """Return the columns of the records of a task.

    ``status`` is ``done``, ``nothing found`` or ``failed``, with the reason in ``error`` and its kind in ``kind``.

    :param located: with ``source`` and ``record``, which say where a page stands, as in the output of a batch.
    """
    arrow, _ = parquet_packages()
    text = arrow.string()
    location = [("source", text), ("record", arrow.int64())] if located else []
    fields = [*location, ("id", text), ("url", text), ("status", text), ("title", text)]
    if task.do != "clean":
        fields.append(("question", text))
    fields.append(("output", arrow.large_string()))
    if task.main:
        fields.append(("main_confidence", arrow.float64()))
    if task.do == "prune":
        fields.append(("tokens", arrow.int64()))
    if task.do == "ask":
        kinds = {"number": arrow.int64(), "found": arrow.bool_(), "support": arrow.float64()}
        fields.append(("citations", arrow.list_(arrow.struct([(name, kinds.get(name, text)) for name in CITED]))))
        fields.append(("unsupported", arrow.list_(text)))
    fields.append(("warnings", arrow.list_(text)))
    return arrow.schema([*fields, ("error", text), ("kind", text)])


def table_of(records: Sequence[Mapping[str, Any]], task: Task, located: bool = False) -> pa.Table:
    """Return records as a table with the columns of :func:`schema_of`; what a record lacks is null."""
    arrow, _ = parquet_packages()
    schema = schema_of(task, located)
    columns = [
        arrow.array([_unicode(record.get(name)) for record in records], schema.field(name).type)
        for name in schema.names
    ]
    return arrow.Table.from_arrays(columns, schema=schema)


def _unicode(value: Any) -> Any:
    """Return a value with every text valid Unicode: a damaged page may hold half of a pair of surrogates."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_unicode(inner) for inner in value]
    return {key: _unicode(inner) for key, inner in value.items()} if isinstance(value, dict) else value
