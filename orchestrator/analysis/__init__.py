"""What a run's results mean: outcomes against expectations, changes, the verdict sentence."""
