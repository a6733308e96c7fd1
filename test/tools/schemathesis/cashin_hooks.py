"""Tokens of many partners, since the quotas of the cash-in surface are small, and the
headers that every answer of it has."""

import itertools
import json
import os
import urllib.request

import schemathesis

ANONYMOUS = bool(os.environ.get("SCHEMATHESIS_ANONYMOUS"))
URL = os.environ["SCHEMATHESIS_URL"]
PAIRS = json.loads(os.environ["SCHEMATHESIS_PAIRS"])
HEADERS = {
    "deprecation": ["true"],
    "sunset": ["Thu, 30 Sep 2027 00:00:00 GMT"],
    "link": ['</api/v1/checkout/sessions>; rel="successor-version"'],
    "content-type": ["application/json"],
}


def generate(pair):
    request = urllib.request.Request(
        URL + "/api/generate-application-access-token",
        data=json.dumps(pair).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["token"]


if not ANONYMOUS:
    tokens = itertools.cycle([generate(pair) for pair in PAIRS])
    spare = itertools.cycle(PAIRS)  # of tokens that are to be revoked

    @schemathesis.auth(refresh_interval=None)
    class Token:
        def get(self, case, ctx):
            if case.operation.definition.raw.get("operationId") != "revokeToken":
                return next(tokens)
            try:
                return generate(next(spare))
            except OSError:  # its quota: the request goes without a token
                return None

        def set(self, case, data, ctx):
            if data:
                case.headers = case.headers or {}
                case.headers["Authorization"] = "Bearer " + data


@schemathesis.check
def deprecated(ctx, response, case):
    """Every answer has each header once, whatever its status."""
    got = {name: response.headers.get(name) for name in HEADERS}
    if got != HEADERS:
        raise AssertionError(f"{response.status_code} with {got}")


@schemathesis.check
def nothing_without_token(ctx, response, case):
    """Without a token every route but one answers 401, or 405 to another method."""
    if not ANONYMOUS or case.operation.definition.raw.get("operationId") == "generateToken":
        return
    if response.status_code not in (401, 405):
        raise AssertionError(f"{response.status_code} without a token: {response.text}")
