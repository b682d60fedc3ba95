"""Content addresses and stable identities."""

import hashlib
import json
from collections.abc import Mapping


def sha256_hex(data: bytes) -> str:
    """Content address of a blob: 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def stable_id(identity: Mapping[str, object]) -> str:
    """16 hex digits that depend on the identity's content only, not on key order."""
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256_hex(text.encode("ascii"))[:16]
