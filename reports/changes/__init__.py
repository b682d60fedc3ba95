"""What changed, as the history tells it: pages, table, details and plain text of findings."""
