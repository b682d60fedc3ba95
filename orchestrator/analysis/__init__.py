"""What a run's results mean: statistics, outcomes against expectations, comparison, summary. No I/O."""
