"""The agent: one process a host that keeps one worker for each phone and gets lost phones back."""
