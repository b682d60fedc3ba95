"""Dispatch through Celery and Redis, and the run folder that nothing gets lost from."""
