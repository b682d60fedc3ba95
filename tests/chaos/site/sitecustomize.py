"""Makes a Python process believe that it runs on another host, or that its farm was configured otherwise.

On ``PYTHONPATH`` of an agent, it reaches the workers that the agent starts. The product knows nothing of it.
"""

import os
import platform
from pathlib import Path
from typing import Any

if host := os.environ.get("CHAOS_HOST"):
    platform.node = lambda: host

if seconds := os.environ.get("CHAOS_VISIBILITY_S"):
    from kombu.transport.redis import QoS

    from orchestrator.domain import names

    configured = names.celery_settings()
    configured["broker_transport_options"] |= {
        "visibility_timeout": float(seconds),
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    }
    names.celery_settings = lambda: configured

    restore = QoS.restore_by_tag

    def restore_and_tell(self: QoS, tag: str, client: Any = None, leftmost: bool = False) -> None:
        """Each message that is taken from whoever has it in hand is counted."""
        with Path(os.environ["CHAOS_AGAIN"]).open("a", encoding="utf-8") as file:
            file.write(f"{tag}\n")
        restore(self, tag, client, leftmost)

    QoS.restore_by_tag = restore_and_tell
