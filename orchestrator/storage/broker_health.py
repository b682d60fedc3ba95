"""Would this Redis keep what a farm entrusts to it, and is there room left?"""

from dataclasses import dataclass

from orchestrator.storage.redis_client import RedisClient

FULL_SHARE = 0.8
"""Of ``maxmemory``: time is left to end runs or to raise it, before writes are refused."""


@dataclass(frozen=True, slots=True)
class BrokerHealth:
    """As Redis tells it itself (``INFO memory`` and ``INFO persistence``)."""

    used_bytes: int
    max_bytes: int
    """0: as much as the machine has, and then the kernel kills it."""
    policy: str
    append_only: bool
    write_ok: bool
    """Of the append-only file's last write."""

    def troubles(self) -> list[str]:
        """Each with what to do; empty: all is well."""
        found: list[str] = []
        if self.policy != "noeviction":
            found.append(
                f"maxmemory-policy is {self.policy}: a full Redis throws queued work and holds away; "
                "set noeviction"
            )
        if self.max_bytes == 0:
            found.append("no maxmemory: a full machine kills Redis instead of refusing one write; set it")
        elif self.used_bytes >= FULL_SHARE * self.max_bytes:
            found.append(
                f"{self.used_bytes >> 20} of {self.max_bytes >> 20} MiB in use, and a full Redis takes no "
                "results: raise maxmemory (a run's keys stay for 7 days after its last news)"
            )
        if not self.append_only:
            found.append("appendonly is off: a restart forgets queued work and holds; set appendonly yes")
        elif not self.write_ok:
            found.append("its append-only file cannot be written: is its disk full?")
        return found


def broker_health(client: RedisClient) -> BrokerHealth:
    """Raises redis.RedisError where Redis does not answer."""
    memory, persistence = client.info("memory"), client.info("persistence")
    return BrokerHealth(
        used_bytes=int(str(memory.get("used_memory", 0))),
        max_bytes=int(str(memory.get("maxmemory", 0))),
        policy=str(memory.get("maxmemory_policy", "unknown")),
        append_only=str(persistence.get("aof_enabled", 0)) == "1",
        write_ok=persistence.get("aof_last_write_status", "ok") == "ok",
    )
