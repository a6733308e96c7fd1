"""Verifies an exported batch of disbursements without Quittance. It needs the package cryptography.

    python3 verify.py batch.json [PERSON=KEY ...]

KEY is the SHA-256 of a public key that you know to be a person's, in hexadecimal. Without any, the script says whose name
the batch gives to each key; compare them yourself. It says what was signed, and exits with 1 if anything differs.
"""

import base64
import hashlib
import json
import sys

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa


def must(holds, why):
    if not holds:
        raise ValueError(why)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def decoded(text):
    return base64.urlsafe_b64decode(text + "==")


def canonical(value):
    """Returns the canonical JSON of RFC 8785, of printable ASCII and integers."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    must(all(" " <= c <= "~" for c in text) and "\\u" not in text, "a text is no printable ASCII")
    return text.encode()


def root(leaves):
    """Returns the root of the tree of RFC 6962. The leaves bear their zero byte."""
    if len(leaves) == 1:
        return leaves[0]
    left = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\x01", root(leaves[:left]), root(leaves[left:]))


def check_lines(batch, lines):
    must(all(a["line_ref"] < b["line_ref"] for a, b in zip(lines, lines[1:])), "the lines are not in order")
    must(all(type(line["amount"]) is int and line["amount"] > 0 and line["currency"] == batch["currency"] for line in lines), "an amount differs")
    amounts = [line["amount"] for line in lines]
    must((len(lines), sum(amounts), max(amounts)) == (batch["count"], batch["sum"], batch["largest"]), "count, sum or largest amount differ")
    accounts = {c: [line["amount"] for line in lines if line["payout_account"] == c] for c in {line["payout_account"] for line in lines}}
    signed = {a["code"]: (a["count"], a["sum"]) for a in batch["accounts"]}
    must(signed == {code: (len(own), sum(own)) for code, own in accounts.items()}, "the lines of an account differ")
    leaves = [sha256(b"\x00", bytes.fromhex(line.pop("salt")), canonical(line)) for line in lines]
    must(root(leaves).hex() == batch["root"], "the lines are not those that were approved")


def check_signature(key, message, signature):
    arguments = ()
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        arguments = (ec.ECDSA(hashes.SHA256()),)
    elif isinstance(key, rsa.RSAPublicKey):
        arguments = (padding.PKCS1v15(), hashes.SHA256())
    must(arguments or isinstance(key, ed25519.Ed25519PublicKey), "the key is of another kind")
    key.verify(signature, message, *arguments)


def check_approval(batch, digest, approval, known):
    level, person, key = approval["level"], approval["person"], sha256(decoded(approval["public_key"])).hex()
    persons = dict(enumerate(batch["policy"]["levels"], 1)).get(level, {}).get("persons", [])
    listed = any((p["id"], p.get("for")) == (person, approval.get("for")) and key in p["keys"] for p in persons)
    must(listed, f"{person} has no such passkey at level {level}")
    must(not known or f"{person}={key}" in known, f"you do not know the passkey of {person}")
    step = {"digest": digest, "level": level, "person": person, "verdict": "approve"}
    client, data = json.loads(decoded(approval["client_data"])), decoded(approval["authenticator_data"])
    challenge = decoded(client["challenge"])
    must(len(challenge) == 64 and challenge[32:] == sha256(b"quittance approval v1\n", canonical(step)), f"{person} signed something else")
    must((client["type"], client["origin"], client.get("crossOrigin", False)) == ("webauthn.get", batch["origin"], False), f"{person} signed on another page")
    must(data[:32] == sha256(batch["rp_id"].encode()) and data[32] & 5 == 5, f"{person} is not verified by a passkey of the host")
    public = serialization.load_der_public_key(decoded(approval["public_key"]))
    check_signature(public, data + sha256(decoded(approval["client_data"])), decoded(approval["signature"]))
    print(f"level {level}: {person} with passkey {key}")


try:
    export = json.load(open(sys.argv[1], encoding="utf-8"))
    batch, approvals = export["batch"], export["approvals"]
    must(export["form"] == "quittance disbursement export v1", "the file has another form")
    check_lines(batch, export["lines"])
    digest = sha256(b"quittance disbursement v1\n", canonical(batch)).hex()
    people = [p for a in approvals for p in (a["person"], a.get("for")) if p] + [batch["maker"]]
    must(len(set(people)) == len(people), "a person approved twice, or made the batch")
    for approval in approvals:
        check_approval(batch, digest, approval, sys.argv[2:])
    counts = [(rule["needed"], sum(a["level"] == i for a in approvals)) for i, rule in enumerate(batch["policy"]["levels"], 1)]
    must(counts and all(given == needed > 0 for needed, given in counts), "a level lacks approvals, or nobody had to approve it")
    print(f"{batch['batch_ref']} revision {batch['revision']}: {batch['count']} lines, {batch['sum']} {batch['currency']}: holds (digest {digest})")
except Exception as error:  # whatever cannot be read does not hold
    print(f"does not hold: {error or type(error).__name__}")
    sys.exit(1)
