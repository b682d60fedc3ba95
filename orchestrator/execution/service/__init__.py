"""The orchestrator's service: it carries out runs that were submitted, one child process a run."""
