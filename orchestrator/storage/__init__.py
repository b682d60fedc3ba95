"""Content-addressed blobs: the one kind of storage that orchestrator and workers share."""
