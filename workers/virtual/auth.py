"""adb's host authentication: a random token, signed with the host's RSA key.

The public key arrives in Android's own format: base64 of a struct with the modulus in little-endian words
(source: adb's docs/dev/auth and crypto_utils/android_pubkey.c). The token stands for a SHA-1 digest.
"""

import base64
import binascii
import hmac
import struct

_MODULUS_BYTES = 256
_STRUCT_BYTES = 4 + 4 + _MODULUS_BYTES + _MODULUS_BYTES + 4
_SHA1_PREFIX = bytes.fromhex("3021300906052b0e03021a05000414")
TOKEN_BYTES = 20


def parse_public_key(text: bytes) -> tuple[int, int] | None:
    """(modulus, exponent) of ``BASE64 [user@host]``, or None when it is no 2048-bit adb key."""
    words = text.rstrip(b"\0").split()
    try:
        raw = base64.b64decode(words[0], validate=True) if words else b""
    except binascii.Error:
        return None
    if len(raw) != _STRUCT_BYTES or struct.unpack_from("<I", raw)[0] != _MODULUS_BYTES // 4:
        return None
    modulus = int.from_bytes(raw[8 : 8 + _MODULUS_BYTES], "little")
    (exponent,) = struct.unpack_from("<I", raw, _STRUCT_BYTES - 4)
    return modulus, exponent


def signed_by(key: tuple[int, int], token: bytes, signature: bytes) -> bool:
    """PKCS #1 v1.5 check of a signature over the token."""
    modulus, exponent = key
    if len(signature) != _MODULUS_BYTES:
        return False
    plain = pow(int.from_bytes(signature, "big"), exponent, modulus).to_bytes(_MODULUS_BYTES, "big")
    tail = _SHA1_PREFIX + token
    padding = b"\xff" * (_MODULUS_BYTES - 3 - len(tail))
    return hmac.compare_digest(plain, b"\x00\x01" + padding + b"\x00" + tail)
