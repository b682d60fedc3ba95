"""What orchestrator and workers both reach: the blob store and the broker's Redis."""
