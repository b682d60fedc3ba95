"""The device side: transports, sessions, Celery tasks, virtual phones and the on-device runner."""
