"""Clean or prune a table of pages on Spark: the same function that Ray and Dask call, here through mapInArrow.

    python examples/spark_batch.py pages.parquet evidence.parquet "When does the bridge open?"

It needs `pip install '.[parquet]' pyspark` and Java, on every machine of the cluster. The table has the column
html (or text, or another of docs/scale.md), and may have url, id and question.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from prunus.batch.arrow import Mapper, schema_of
from prunus.batch.work import Task


def records_of(pages: DataFrame, task: Task) -> DataFrame:
    """Return a record for each page, see prunus.batch.arrow."""
    return pages.mapInArrow(Mapper(task).batches, from_arrow_schema(schema_of(task)))


def main() -> None:
    source, target, *question = sys.argv[1:]
    spark = SparkSession.builder.appName("prunus").getOrCreate()
    task = Task("prune", question[0], budget=512) if question else Task("clean", format="markdown", main=True)
    records_of(spark.read.parquet(source), task).write.parquet(target)
    spark.stop()


if __name__ == "__main__":
    main()
