"""verify.py KEYS RECEIPT verifies a receipt without network. KEYS is a file with the
service's /.well-known/jwks.json, RECEIPT what the QR code holds. Needs jwcrypto."""
import json
import sys

from jwcrypto import jwk, jws

keys = jwk.JWKSet.from_json(open(sys.argv[1], encoding="utf-8").read())
token = jws.JWS()
token.allowed_algs = ["EdDSA"]
token.deserialize(sys.argv[2].split("#")[-1])
key = keys.get_key(token.jose_header["kid"])
if key is None or token.jose_header["typ"] != "quittance+jwt":
    sys.exit("no key of this service has signed this")
token.verify(key)  # raises InvalidJWSSignature
result = {"claims": json.loads(token.payload), "test": key["mode"] != "live"}
print(json.dumps(result))  # whether the payment was reversed: ask the service
