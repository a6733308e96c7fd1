"""Verifies the output of `quittance decisions verify --json` without Quittance.

    python3 verify.py decisions.json [PUBLIC_KEY ...]

A PUBLIC_KEY is one that you know to be a person's, as the list has it. Without any, the script
says whose name the list gives to each key; compare them yourself. It needs the program openssl.
"""

import base64
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def holds(key, message, signature):
    """Reports whether the signature over the message is one of the key (SubjectPublicKeyInfo)."""
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, data in (("key", key), ("message", message), ("signature", signature)):
            files[name] = Path(folder, name)
            files[name].write_bytes(data)
        base = ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", files["key"], "-rawin", "-in", files["message"], "-sigfile", files["signature"]]
        about = subprocess.run(["openssl", "pkey", "-pubin", "-inform", "DER", "-in", files["key"], "-text", "-noout"], capture_output=True, text=True).stdout
        digest = [] if "ED25519" in about else ["-digest", "sha384" if "P-384" in about else "sha512" if "P-521" in about else "sha256"]
        return subprocess.run(base + digest, capture_output=True).returncode == 0


def fault(d, known):
    line, _, text = d["statement"].partition("\n")
    said, client = json.loads(text), json.loads(decoded(d["client_data"]))
    challenge, authenticator = decoded(d["challenge"]), decoded(d["authenticator_data"])
    if line != "quittance decision v1":
        return "the statement is of another form"
    for name in ("kind", "subject", "verdict", "person"):
        if said[name] != d[name]:
            return f"the statement says another {name}"
    if len(challenge) != 64 or challenge[32:] != hashlib.sha256(d["statement"].encode()).digest():
        return "another statement was signed"
    if client["type"] != "webauthn.get" or client["challenge"] != d["challenge"]:
        return "another challenge was signed"
    if authenticator[:32] != hashlib.sha256(d["host"].encode()).digest():
        return "the passkey is of another host"
    if authenticator[32] & 5 != 5:
        return "the authenticator has not verified the person"
    if not holds(decoded(d["public_key"]), authenticator + hashlib.sha256(decoded(d["client_data"])).digest(), decoded(d["signature"])):
        return "the signature does not hold"
    if known and d["public_key"] not in known:
        return "the public key is none that you know"
    return ""


wrong = 0
for d in json.loads(Path(sys.argv[1]).read_text()):
    try:
        why = fault(d, sys.argv[2:])
    except (ValueError, KeyError, IndexError) as error:
        why = f"it cannot be read: {error}"
    wrong += bool(why)
    print(f"{d['at']} {d['name']} {d['verdict']} {d['kind']} {d['subject']}: {why or 'holds'} (key {d['public_key'][-12:]})")
sys.exit(1 if wrong else 0)
