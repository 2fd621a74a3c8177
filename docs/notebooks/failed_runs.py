# %% [markdown]
# # Failed runs of a month
#
# Failed runs in pandas and DuckDB, joined with a table of your own, and a picture. This is a notebook in the percent format
# of jupytext: open it in VS Code or Jupyter, or run `python failed_runs.py`. It needs `pandas`, `pyarrow`, `duckdb` and
# `matplotlib`.
#
# First export the runs, also those that did not fail, because a share needs them:
#
# ```sh
# tacho export --parquet runs --from 30d -o runs.parquet
# ```

# %%
import os

import duckdb
import matplotlib

matplotlib.use("agg")  # Without a screen; drop this line in a notebook.
import matplotlib.pyplot as plt
import pandas as pd

RUNS = os.environ.get("RUNS_FILE", "runs.parquet")
PICTURE = os.environ.get("PICTURE_FILE", "failed-runs.png")

# %% [markdown]
# ## pandas
#
# Times are in UTC. A value that was not sent is null, not 0: a mean counts only the runs whose cost is known.

# %%
runs = pd.read_parquet(RUNS)
failed = runs[runs["status"] == "FAILED"]
reasons = failed.groupby(["failureErrorClass", "failureName"], dropna=False).agg(
    runs=("runId", "count"), mean_cost=("cost", "mean"), cost_known=("cost", "count")
)
print(reasons.sort_values("runs", ascending=False).head(10))

# %% [markdown]
# ## A table of your own
#
# Here: the plan of each customer. `userId` is the end user that a run names. Read yours with `pd.read_csv`.

# %%
users = sorted(runs["userId"].dropna().unique())
customers = pd.DataFrame({"userId": users, "plan": [("free", "paid")[n % 2] for n in range(len(users))]})

# %% [markdown]
# ## DuckDB
#
# It reads the file and the data frame in one statement.

# %%
by_plan = duckdb.sql(
    f"""
    SELECT coalesce(plan, 'unknown') AS plan, count(*) AS runs,
      count(*) FILTER (status = 'FAILED') AS failed,
      sum(coalesce(cost, 0) + coalesce(estimatedCost, 0)) AS cost,
      sum(unpricedCalls)::BIGINT AS calls_without_cost
    FROM '{RUNS}' LEFT JOIN customers USING (userId) GROUP BY ALL ORDER BY plan
    """
).df()
print(by_plan.to_string(index=False))

# %% [markdown]
# ## A picture
#
# A day begins at midnight in your zone.

# %%
ZONE = os.environ.get("ZONE", "UTC")
days = failed["startedAt"].dt.tz_convert(ZONE).dt.date
counts = days.value_counts().sort_index()
figure, axes = plt.subplots(figsize=(9, 3))
axes.bar([str(day) for day in counts.index], counts.to_numpy())
axes.set(title=f"Failed runs by day, {ZONE}", ylabel="runs")
axes.tick_params(axis="x", rotation=90)
figure.tight_layout()
figure.savefig(PICTURE)
print(f"{counts.sum()} failed runs on {len(counts)} days: {PICTURE}")
