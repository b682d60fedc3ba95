"""The second half of a push: prove the digest on the phone, set the mode, rename."""

from orchestrator.domain.errors import TransferFailed

_FINISH = """
[ -d "$2" ] && { echo folder; exit 0; }
if [ "$3" ]; then
  sum=$(sha256sum < "$1" 2>/dev/null) || { echo untold; exit 0; }
  case "$sum" in "$3"*) ;; *) echo digest; exit 0 ;; esac
fi
chmod "$4" "$1" && mv -f "$1" "$2" && echo moved
"""
"""Arguments: temporary file, target, sha256 (empty: proven already), mode. Says one word."""

PROVEN = ""
"""In place of a digest: the caller has compared the bytes itself."""
UNTOLD = "untold"
"""This phone has no ``sha256sum``."""
WRONG_DIGEST = "digest"

_WRONG = {
    WRONG_DIGEST: "the file on the phone has other bytes (sha256). Try again; another cable if it stays.",
    "folder": "a folder is in the way",
}


def finish_argv(partial: str, path: str, digest: str, mode: int) -> list[str]:
    return ["sh", "-c", _FINISH, "sh", partial, path, digest, f"{mode:o}"]


def check_finished(said: str, what: str) -> None:
    """
    Raises:
        TransferFailed: the script said anything but ``moved``.
    """
    if said != "moved":
        why = _WRONG.get(said) or f"cannot be renamed ({said or 'no answer'})"
        raise TransferFailed(f"{what}: {why}")
