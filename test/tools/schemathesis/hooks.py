"""What the configuration cannot say of the requests that schemathesis makes."""

import os

import schemathesis
from schemathesis import GenerationMode
from schemathesis.core.parameters import ParameterLocation


@schemathesis.hook
def before_call(context, case, kwargs):
    """Name the key's own agency wherever a query that is meant to be valid names one.

    Another agency is rightly refused, which a schema cannot express, and what
    schemathesis takes from an earlier answer may be a session's id.
    """
    query = case.meta and case.meta.components.get(ParameterLocation.QUERY)
    if query and query.mode == GenerationMode.NEGATIVE:
        return
    if case.query and "tenant_id" in case.query:
        case.query["tenant_id"] = os.environ["SCHEMATHESIS_TENANT_ID"]
