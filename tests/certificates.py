"""An authority of our own and a certificate of 127.0.0.1, as docs/operations.md makes them."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True, slots=True)
class Certificates:
    ca: Path
    certificate: Path
    key: Path


def make(folder: Path) -> Certificates:
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificates(folder / "ca.pem", folder / "broker.pem", folder / "broker.key")
    ca_key, request, names = folder / "ca.key", folder / "request.pem", folder / "names"
    names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for words in (
        ["req", "-x509", *_KEY, "-days", "2", "-subj", "/CN=A test", "-keyout", ca_key, "-out", made.ca],
        ["req", *_KEY, "-subj", "/CN=localhost", "-keyout", made.key, "-out", request],
        [
            *("x509", "-req", "-in", request, "-days", "2", "-extfile", names),
            *("-CA", made.ca, "-CAkey", ca_key, "-CAcreateserial", "-out", made.certificate),
        ],
    ):
        subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)
    return made
