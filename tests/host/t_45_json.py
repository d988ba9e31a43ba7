#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""docs/schema and the commands that need no policy in force: do they agree?

The rest is judged by guest/t_44_json. Nothing here changes the machine.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True

import json  # noqa: E402

import jsonschema  # noqa: E402

import schema  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TIER_BUILD", os.path.join(TOP, "build"))
FAULTS = b'{"latency_ms":100,"expect":"hot"}\n{"latency_ms":5000}\n'
COMMANDS = (["help"], ["version"], ["version", "--features"], ["list"], ["info", "fixed"],
            ["info", "lazyscan"], ["info", "fixed", "--verify"], ["topo"], ["status"], ["config"],
            ["completion", "bash"], ["metrics"], ["doctor", "-w", "0"], ["replay", "fixed"],
            ["nosuch"], ["stats", "-i", "x"], ["explain", "0"])

checks = 0
failed = 0


def check(what, bad):
    global checks, failed
    checks += 1
    failed += bool(bad)
    print(f"{'not ok' if bad else 'ok'} {checks} - {what}")
    for line in bad[:20]:
        print(f"#   {line}")


def judge(words):
    env = dict(os.environ, TIERCTL_POLICY_PATH=os.path.join(BUILD, "bpf"))
    done = subprocess.run([os.path.join(BUILD, "user", "tierctl"), "--json", *words], env=env,
                          input=FAULTS, capture_output=True, timeout=120)
    text = done.stdout.decode("utf-8", "replace")
    try:
        error = "error" in json.loads(text) and done.returncode
    except ValueError:
        error = False
    bad = schema.complaints("error" if error else words[0], text)
    # A machine may lack what a command needs; that is said in JSON, too, and is no usage.
    if words[0] not in ("nosuch", "stats", "explain") and done.returncode == 2:
        bad.append(f"exit 2: {text[:200]}")
    check(f"JSON of {' '.join(words)}" + (" (an error)" if error else ""), bad)
    return text


def main():
    commands = {c["name"] for c in json.loads(judge(["help"]))["commands"]}
    for words in COMMANDS[1:]:
        judge(words)
    for name in schema.names():
        bad = []
        try:
            jsonschema.Draft7Validator.check_schema(schema.load(name))
        except (ValueError, jsonschema.SchemaError) as e:
            bad.append(str(e)[:300])
        if name not in commands | {"error"}:
            bad.append("no command is called so")
        if not bad:
            bad = [f"{n}: no unit, and no count that schema.py knows"
                   for n in schema.without_unit(name)]
        check(f"schema of {name}", bad)
    check("every command has a schema", sorted(commands - set(schema.names()) - schema.WITHOUT))
    print(f"1..{checks}")
    sys.exit(failed > 0)


main()
