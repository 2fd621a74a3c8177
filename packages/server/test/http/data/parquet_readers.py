"""Prints what a reader of Parquet makes of a file of runs, as JSON. Arguments: the reader, the file."""

import json
import sys

COLUMNS = ["runId", "startedAt", "cost", "totalTokens", "unpricedCalls", "userId", "tags", "failureMessage", "title"]


def with_duckdb(file):
    import duckdb

    names = ", ".join("epoch_ms(startedAt) AS startedAt" if name == "startedAt" else name for name in COLUMNS)
    rows = duckdb.sql(f"SELECT {names} FROM '{file}'").fetchall()
    days = duckdb.sql(f"SELECT typeof(startedAt), avg(cost) FROM '{file}' GROUP BY 1").fetchall()
    return duckdb.__version__, [dict(zip(COLUMNS, row)) for row in rows], days[0][0], days[0][1]


def with_pandas(file):
    import pandas

    table = pandas.read_parquet(file, engine="pyarrow", columns=COLUMNS)
    return pandas.__version__, records(pandas, table), str(table["startedAt"].dtype), table["cost"].mean()


def with_fastparquet(file):
    import fastparquet
    import pandas

    # It reads no lists: it gives null for them.
    table = fastparquet.ParquetFile(file).to_pandas(columns=[name for name in COLUMNS if name != "tags"])
    return fastparquet.__version__, records(pandas, table), str(table["startedAt"].dtype), table["cost"].mean()


def records(pandas, table):
    rows = []
    for row in table.to_dict("records"):
        row["startedAt"] = round(row["startedAt"].timestamp() * 1000)
        if row.get("tags") is not None:
            row["tags"] = list(row["tags"])
        rows.append({name: value if name == "tags" or not pandas.isna(value) else None for name, value in row.items()})
    return rows


def with_polars(file):
    import polars

    table = polars.read_parquet(file, columns=COLUMNS)
    rows = table.with_columns(polars.col("startedAt").dt.timestamp("ms")).to_dicts()
    return polars.__version__, rows, str(table["startedAt"].dtype), table["cost"].mean()


READERS = {"duckdb": with_duckdb, "pandas": with_pandas, "polars": with_polars, "fastparquet": with_fastparquet}

version, rows, time_type, mean_cost = READERS[sys.argv[1]](sys.argv[2])
rows.sort(key=lambda row: row["runId"])
print(json.dumps({"version": version, "rows": rows, "timeType": time_type, "meanCost": mean_cost}, default=int))
