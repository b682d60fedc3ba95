"""What the farm has measured so far: runs and devices in a database, trials in one Parquet file a run."""
