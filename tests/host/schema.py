# SPDX-License-Identifier: GPL-2.0
"""JSON of tierctl against docs/schema/COMMAND.schema.json."""
import json
import os
import re

import jsonschema

SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "schema")
# Full screen, and a service: no document to describe.
WITHOUT = {"top", "daemon"}
# Numbers that are counts of what their name says, ids, or values whose unit stands beside
# them. All others end in a unit.
UNITS = re.compile(r"(_(ns|ms|s|bytes|pages|faults|insns|mbps|ratio|per_s))$")
COUNTS = re.compile(
    r"^(faults|pages|faults_\w+|\w+_(faults|works|runs|ptes|ptes_per_run|events|passes)|times|runs|"
    r"cpus|checks|insns|unexpected|mapped_by|promote_(ok|refused|failed))$")
IDS = re.compile(r"^(node|\w+_node|cpu|pid|tid|fault|link_id|map_id|abi_version|exit_code|error|"
                 r"numa_balancing|demotion_targets|value|min|max|default)$")


def load(command):
    with open(os.path.join(SCHEMAS, command + ".schema.json"), encoding="utf-8") as f:
        return json.load(f)


def names():
    return sorted(n.split(".")[0] for n in os.listdir(SCHEMAS) if n.endswith(".schema.json"))


def documents(text):
    """One document, or one a line from a command that streams."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def complaints(command, text):
    """What is wrong with this output of the command."""
    if command not in names():
        return [f"there is no docs/schema/{command}.schema.json"]
    validator = jsonschema.Draft7Validator(load(command))
    try:
        docs = documents(text)
    except ValueError as e:
        return [f"no JSON: {e}: {text[:100]!r}"]
    bad = [] if docs else ["nothing was printed"]
    for nr, doc in enumerate(docs, 1):
        bad += [f"docs/schema/{command}.schema.json, document {nr}, "
                f"/{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}"
                for e in validator.iter_errors(doc)]
    return bad


def numbers(schema, key):
    """Names of all numbers that a schema names. Counters and parameters are maps by name,
    and have their units where they are declared."""
    types = schema.get("type", [])
    if {"integer", "number"} & set([types] if isinstance(types, str) else types):
        yield key
    for part in ("properties", "definitions"):
        for name, inner in schema.get(part, {}).items():
            yield from numbers(inner, name)
    for inner in [schema.get("items")] + schema.get("oneOf", []):
        if inner:
            yield from numbers(inner, key)


def without_unit(command):
    return sorted({n for n in numbers(load(command), "")
                   if not (UNITS.search(n) or COUNTS.match(n) or IDS.match(n))})
