"""Submitted runs in Redis, the one orchestrator that carries them out, and which services live."""

import structlog

from orchestrator.domain.errors import WireError
from orchestrator.domain.names import (
    RUN_KEYS_TTL_S,
    SERVICE_KEY_PREFIX,
    SERVICE_TTL_S,
    SUBMISSIONS_KEY,
    service_key,
    state_key,
)
from orchestrator.domain.run_state import RunState
from orchestrator.domain.submission import Service, Submission
from orchestrator.domain.wire import pack, unpack
from orchestrator.storage.own_key import GIVE_BACK, KEEP
from orchestrator.storage.redis_client import RedisClient

LEADER_KEY = "tilefarm:orchestrator"
"""``HOST OUT`` of the orchestrator that carries out what is submitted; gone when it is."""
LEADER_TTL_S = 20

# State and submission at once: no run is announced that nobody will find, and none begins unannounced.
_SUBMIT = """
if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[4])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
return 1
"""
log = structlog.get_logger()


class Submissions:
    """Raises redis.RedisError where Redis does not answer."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._submit = client.register_script(_SUBMIT)
        self._lead = client.register_script(KEEP)
        self._resign = client.register_script(GIVE_BACK)

    def put(self, submission: Submission, state: RunState) -> bool:
        """False where a run of that id is known already: nothing is changed then."""
        keys = [state_key(submission.run_id), SUBMISSIONS_KEY]
        return self._submit(keys, [submission.run_id, pack(state), pack(submission), RUN_KEYS_TTL_S]) == 1

    def all(self) -> dict[str, Submission | WireError]:
        """By run id, unordered; what cannot be read, or must not be believed, is its error."""
        found = self._client.hgetall(SUBMISSIONS_KEY)
        return {
            run_id.decode("utf-8", "surrogateescape"): read_submission(run_id, text)
            for run_id, text in found.items()
        }

    def strike_off(self, run_id: str) -> bool:
        """False where it was no submission any more. Takes any key that ``all`` gave."""
        return self._client.hdel(SUBMISSIONS_KEY, run_id.encode("utf-8", "surrogateescape")) == 1

    def lead(self, who: str) -> bool:
        """Become or stay the orchestrator of this farm; False while another one is."""
        return self._lead([LEADER_KEY], [who, LEADER_TTL_S]) == 1

    def resign(self, who: str) -> None:
        self._resign([LEADER_KEY], [who])

    def serves(self, service: Service) -> None:
        """Say that a service lives; to be repeated every few seconds."""
        self._client.set(service_key(service.name, service.host), pack(service), ex=SERVICE_TTL_S)

    def serves_no_more(self, service: Service) -> None:
        self._client.delete(service_key(service.name, service.host))

    def services(self, name: str) -> list[Service]:
        """Of all hosts, now."""
        found: list[Service] = []
        for key in self._client.scan_iter(match=f"{SERVICE_KEY_PREFIX}{name}:*"):
            try:
                if text := self._client.get(key):
                    found.append(unpack(Service, text, key.decode("utf-8", "replace")))
            except WireError as e:
                log.warning("service not read", error=str(e))
        return sorted(found, key=lambda s: s.host)


def read_submission(run_id: bytes, text: bytes) -> Submission | WireError:
    """One field of the hash; a field and its submission must name the same run."""
    where = f"{SUBMISSIONS_KEY} {run_id[:80].decode('utf-8', 'backslashreplace')}"
    try:
        submission = unpack(Submission, text, where)
        submission.check(where)
        if submission.run_id.encode() != run_id:
            raise WireError(f"{where}: names another run, {submission.run_id}")
    except WireError as e:
        return e
    return submission
