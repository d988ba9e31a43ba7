#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Bad values for every option and argument of every command.

Each must end with exit code 2 and a message that names the option, in text and in
JSON, and never with a crash: tierctl is built with the address and undefined-behaviour
sanitizers for this. The options come from `tierctl help --json`, so a new one is
tested without a word here; only a new kind of value must be added below.

Nothing here may change the machine: all that is run is refused while the command line
is read, or asks for help, or only reads.
"""
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zlib

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TIER_BUILD", os.path.join(TOP, "build"))
ASAN = os.path.join(BUILD, "asan")
TIERCTL = os.path.join(ASAN, "user", "tierctl")
SANITIZE = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined"
CRASHED = 99	# what the sanitizers exit with

# Texts that may be any text: these values are refused only when they are used.
FREE_TEXT = {"FILE", "NAME=VALUE", "[ADDR:]PORT"}
# A value that is right, by what the help calls it, to be given twice.
GOOD = {"N": "3", "TIME": "1s", "PID": "1", "FILE": "x", "NAME=VALUE": "a=1",
        "[ADDR:]PORT": "1", "WHAT": "node", "VERDICT": "promote", "REASON": "hot",
        "PAGE": "tierctl.8"}
# What may be given again.
LISTS = {"NAME=VALUE", "REASON"}
HUGE = "9" * 40
LONG = "x" * 100000

def build():
    env = dict(os.environ, O=ASAN, CFLAGS=SANITIZE, LDFLAGS="-fsanitize=address,undefined")
    env.pop("MAKEFLAGS", None)
    done = subprocess.run(["make", "-C", TOP, "user"], env=env, capture_output=True)
    if done.returncode:
        sys.stderr.buffer.write(done.stdout[-2000:] + done.stderr[-4000:])
        sys.exit("building tierctl with sanitizers failed")


def one_in(n, words):
    """A choice that is the same in every run, in whatever order the tests go."""
    return zlib.crc32(repr(words).encode()) % n == 0


def run(*words, **env):
    # Looking for leaks costs more than all the rest: now and then is enough.
    leaks = int(one_in(16, words))
    full = dict(os.environ, ASAN_OPTIONS=f"exitcode={CRASHED}:detect_leaks={leaks}",
                UBSAN_OPTIONS=f"exitcode={CRASHED}:print_stacktrace=1", LC_ALL="C.UTF-8",
                TIERCTL_POLICY_PATH=os.path.join(BUILD, "bpf"))
    full.update(env)
    try:
        return subprocess.run([TIERCTL, *words], env=full, capture_output=True, timeout=60,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, -1000, b"", b"did not end")


def show(words):
    return " ".join(repr(w) if len(w) < 40 else repr(w[:12]) + "..." for w in words)


def crashed(done):
    return done.returncode < 0 or done.returncode == CRASHED or b"runtime error" in done.stderr \
        or b"Sanitizer" in done.stderr


def words_of(done):
    return done.stderr.decode("utf-8", "replace").strip().replace("\n", " | ")[:300]


def refused(words, name, codes=(2,)):
    """What is wrong with the way in which tierctl refuses these words."""
    done = run(*words)
    bad = []
    if crashed(done):
        return [f"crash: {show(words)}: {words_of(done)[:300]}"]
    if done.returncode not in codes:
        bad.append(f"exit {done.returncode}, expected {codes}: {show(words)}: {words_of(done)}")
    elif name and name not in done.stderr.decode("utf-8", "replace"):
        bad.append(f"no '{name}' in the message: {show(words)}: {words_of(done)}")
    try:
        done.stderr.decode()
    except UnicodeDecodeError:
        bad.append(f"message is no UTF-8: {show(words)}")
    if any(c < 32 and c != 10 for c in done.stderr):
        bad.append(f"control characters reach the terminal: {show(words)}")
    if not one_in(4, words):	# JSON takes the same path: a fourth of them shows it
        return bad
    done = run("--json", *words)
    if crashed(done):
        return bad + [f"crash: --json {show(words)}: {words_of(done)[:300]}"]
    try:
        error = json.loads(done.stdout)["error"]
        if error["exit_code"] not in codes or error["exit_code"] != done.returncode:
            bad.append(f"JSON says {error['exit_code']}, exit {done.returncode}: {show(words)}")
        if name and name not in error["message"]:
            bad.append(f"no '{name}' in JSON: {error['message']}")
    except (ValueError, KeyError, TypeError) as e:
        bad.append(f"--json {show(words)}: no error object: {e}: {done.stdout[:100]!r}")
    return bad


def arguments(command):
    """As many good-looking arguments as the command insists on."""
    text = command["args"] or ""
    if not text or text.startswith("["):
        return []
    return {"completion": ["bash"], "explain": ["1"]}.get(command["name"], ["fixed"])


def test_option(command, option):
    """Yields, as all tests here, what was tested and a list of what was wrong."""
    name, value = "--" + option["name"], option["value"]
    base = [command["name"]]
    rest = arguments(command)
    forms = [name] + (["-" + option["letter"]] if option["letter"] else [])
    bad = []
    if value is None:
        bad += refused(base + [name + "=1"] + rest, name)
        for form in forms:
            done = run(*base, form, form, "--help", *rest)
            if done.returncode:
                bad.append(f"exit {done.returncode}: {form} twice: {words_of(done)}")
        yield f"{command['name']} {name}", bad
        return
    if value not in GOOD:
        yield f"{command['name']} {name}", [f"a new kind of value, {value}: add it to GOOD here"]
        return
    for form in forms:
        bad += refused(base + rest + [form], name)				# missing
        bad += refused(base + [form, ""] + rest, name)				# empty
        bad += refused(base + [form, b"\xff\xfe"] + rest, name)			# no UTF-8
        bad += refused(base + [form, "\x1b[31mred"] + rest, name)		# for terminals
        good = GOOD[value]
        if value not in LISTS:
            bad += refused(base + [form, good, form, good] + rest, name)	# twice
        # The short form differs in how its value is found, not in what it may be.
        if value in FREE_TEXT or form != name:
            continue
        values = ["-1", HUGE, "-" + HUGE, LONG, "nosuch", "1x", "0x", " 1", "1 ", "nan", "inf"]
        if value in ("N", "TIME"):
            values += ["1e999", "1e", "--", "1,5", "+1"]
        for v in values:
            bad += refused(base + [f"{form}={v}"] + rest, name)
    bad += refused(base + [name + "="] + rest, name)
    yield f"{command['name']} {name}", bad


def test_free_text(command, option):
    """Texts that are refused only by the one who uses them: still with the option's name."""
    name, value = "--" + option["name"], option["value"]
    base, rest, bad = [command["name"]], arguments(command), []
    tries = {
        "[ADDR:]PORT": ["-1", "0", HUGE, "65536", "nosuch", ":", "1:", "::1:80", "[::1", "[]:1",
                        "256.1.1.1:80", "127.0.0.1:80x", LONG, LONG + ":1", "a" * 63 + ":1"],
        "FILE": [LONG, "/nosuch/dir/x", "/"],
        "NAME=VALUE": ["=", "=1", "a", "-1", "a=", LONG, LONG + "=1", "a=" + LONG, "a=1=2"],
    }[value]
    # A file that cannot be had is a failure like any other, not a wrong command line.
    codes = {"FILE": (1, 2), "[ADDR:]PORT": (2,), "NAME=VALUE": (2,)}[value]
    for v in tries:
        if value == "NAME=VALUE":
            # Parameters are known only with the policy: where there is none to be had,
            # the machine (3) or its rights (4) are the first to be complained about.
            bad += refused(base + [f"{name}={v}", "--dry-run"] + rest, None, (2, 3, 4, 1))
        else:
            bad += refused(base + [f"{name}={v}"] + rest, name if value != "FILE" else None, codes)
    yield f"{command['name']} {name} with texts", bad


def test_arguments(command):
    name, bad = command["name"], []
    for word in ("", b"\xff\xfe", "\x1b[31mred"):
        bad += refused([name] + arguments(command)[:-1] + [word], name)
    bad += refused([name] + ["x"] * 70, name)
    bad += refused([name, "--nosuch"], "--nosuch")
    bad += refused([name, "--" + LONG], "--xxx")
    bad += refused([name, b"--\xff\xfe"], "unknown option")
    bad += refused([name, "-%"], "%")
    if arguments(command):
        bad += refused([name], name)
    if command["args"] is None:
        bad += refused([name, "x"], name)
    done = run(name, "--help")
    if done.returncode or b"Usage" not in done.stdout or done.stderr:
        bad.append(f"--help: exit {done.returncode}: {words_of(done)}")
    yield f"{name}: arguments", bad


def test_used_arguments():
    """Arguments that only their command can judge; all of these commands but read."""
    bad = []
    for words in (["explain", "-1"], ["explain", "0"], ["explain", HUGE], ["explain", "x"],
                  ["explain", LONG], ["explain", "1", "x"], ["explain", "1", HUGE * 2],
                  ["completion", "fish"], ["completion", LONG], ["help", "nosuch"],
                  ["help", LONG], ["stats", "--by"], ["trace", "--reason", LONG]):
        bad += refused(words, None)
    for words in (["info", "nosuch"], ["info", LONG], ["info", "/"], ["info", "/dev/null"],
                  ["info", "../" * 1000 + "x"], ["get", LONG]):
        bad += refused(words, None, (1, 2, 3))
    yield "arguments that a command judges", bad


def test_files():
    """What is read from files: the configuration, a saved status, faults to replay."""
    numbers = ("", "x", "-1", HUGE, LONG, "1x", "1 2")
    conf = [(f"{key} = {value}", key) for key in ("poll_ms", "limit_mbps") for value in numbers]
    conf += [("metrics = " + LONG, "metrics"), ("nosuch = 1", "nosuch"), ("x", "="), ("= 1", "key"),
             ("set. = 1", "set."), ("set.a =", "set.a"), (LONG, "="), (LONG + " = 1", "key"),
             (b"poll_ms = \xff", "poll_ms"), (b"\x01\x00", "="), ("\x1b[31m = 1", "key")]
    status = ["", "{", "[]", "1", "null", "{}", '{"policy":1}', '{"policy":""}', '{"policy":null}',
              '{"policy":"fixed","params":[]}', '{"policy":"fixed","params":{"wrap_proof":-1}}',
              '{"policy":"' + LONG + '","params":{}}', "[" * 10000, b"\xff\xfe", LONG,
              '{"policy":"fixed","params":{"' + LONG + '":1}}', '{"policy":"\\u001b[31m"}']
    faults = ["{", "[1]", "1", "null", '{"nosuch":1}', '{"latency_ms":"x"}', '{"latency_ms":-1}',
              '{"latency_ms":' + HUGE + "}", '{"latency_ms":1e400}', '{"room":3}', '{"expect":1}',
              '{"expect":"nosuch"}', '{"dst_nid":-5}', '{"src_nid":99999}', "[" * 10000, LONG,
              b"\xff\xfe", b'{"latency_ms":\x00}', '{"' + LONG + '":1}']
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "input.json")

        def given(text, words, name, codes):
            with open(path, "wb") as f:
                f.write((text if isinstance(text, bytes) else text.encode()) + b"\n")
            return refused(words, name, codes)

        yield "bad configurations", sum((given(text, ["config", "--config", path], name, (2,))
                                         for text, name in conf), [])
        # A machine without tiers may complain of that first.
        yield "bad saved statuses", sum((given(text, ["load", path, "--dry-run"], None,
                                               (1, 2, 3, 4)) for text in status), [])
        yield "bad faults to replay", sum((given(text, ["replay", "fixed", path], None, (2, 3, 4))
                                           for text in faults), [])


def test_globals():
    bad = []
    bad += refused([], "command")
    bad += refused([""], "command")
    bad += refused([b"\xff\xfe"], "command")
    bad += refused([LONG], "command")
    bad += refused(["\x1b[2J"], "command")
    bad += refused(["s"], "ambiguous")
    bad += refused(["--verbose=3", "topo"], "--verbose")
    bad += refused(["--no-color=x", "topo"], "--no-color")
    bad += refused(["--json=x", "topo"], "--json")
    bad += refused(["--nosuch", "topo"], "--nosuch")
    bad += refused(["-", "topo"], "command")
    bad += refused(["--", "topo", "x"], "topo")
    bad += refused(["topo", "--", "--json"], "topo")
    for words in (["--help"], ["--version"], ["-h"], ["-V"], ["help"]):
        done = run(*words)
        if done.returncode or not done.stdout:
            bad.append(f"{words}: exit {done.returncode}")
    yield "global options and the command's name", bad


def test_environment():
    bad = []
    for env in ({"COLUMNS": "0"}, {"COLUMNS": "-1"}, {"COLUMNS": HUGE}, {"LC_ALL": "nosuch"},
                {"LC_ALL": ""}, {"TIERCTL_POLICY_PATH": LONG}, {"TIERCTL_POLICY_PATH": ""},
                {"TIERCTL_POLICY_PATH": "/nosuch"}, {"TIERCTL_POLICY_PATH": "/dev/null"},
                {"TERM": "nosuch"}, {"TERM": ""}, {"NO_COLOR": ""}):
        for words in (["list"], ["topo"], ["version", "--features"], ["info", "fixed"], ["top"]):
            done = run(*words, **env)
            if crashed(done):
                bad.append(f"crash: {env} {words}: {words_of(done)}")
    yield "environment", bad


def test_objects():
    """Broken policy objects: info reads what load would."""
    objects = os.path.join(BUILD, "bpf")
    names = sorted(n for n in os.listdir(objects) if re.fullmatch(r"policy_.*\.bpf\.o", n))
    if not names:
        yield "broken policy objects", ["no policy object in " + objects]
        return
    dice, bad = random.Random(1), []
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "bad.bpf.o")
        for turn in range(60):
            with open(os.path.join(objects, names[turn % len(names)]), "rb") as f:
                data = bytearray(f.read())
            if turn % 3 == 0:
                data = data[:dice.randrange(len(data))]
            elif turn % 3 == 1:
                for _ in range(8):
                    data[dice.randrange(len(data))] = dice.randrange(256)
            else:	# the headers, where a flip hurts most
                for _ in range(3):
                    data[dice.randrange(64)] = dice.randrange(256)
            with open(path, "wb") as f:
                f.write(data)
            done = run("info", path)
            text = done.stderr.decode("utf-8", "replace")
            # A fault inside libelf or libbpf is theirs; one with our frames on top is ours.
            if crashed(done) and not re.search(r"#0 .* in (elf|gelf|bpf|btf|libbpf|mem|str)", text):
                bad.append(f"crash with variant {turn} of {names[turn % len(names)]}: {text[:400]}")
            elif not crashed(done) and done.returncode not in (0, 1, 2, 3):
                bad.append(f"exit {done.returncode} with variant {turn}: {words_of(done)}")
        with open(os.path.join(objects, names[0]), "rb") as f:
            good = f.read()
        with open(path, "wb") as f:
            f.write(good)
        if run("info", path).returncode:
            bad.append("an object that is whole is refused, too")
    yield "broken policy objects", bad


def test_command(command):
    yield from test_arguments(command)
    for option in command["options"]:
        yield from test_option(command, option)
        if option["value"] in FREE_TEXT:
            yield from test_free_text(command, option)


def main():
    build()
    commands = json.loads(run("help", "--json").stdout)["commands"]
    tests = [(test_command, command) for command in commands]
    tests += [(test_files,), (test_used_arguments,), (test_globals,), (test_environment,),
              (test_objects,)]
    results = [("the list of commands", [] if len(commands) > 20 else [f"only {len(commands)}"])]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda test: list(test[0](*test[1:])), tests):
            results += found
    for nr, (what, bad) in enumerate(results, 1):
        print(f"{'not ok' if bad else 'ok'} {nr} - {what}")
        for line in bad[:10]:
            print(f"#   {line}")
    print(f"1..{len(results)}")
    sys.exit(any(bad for _, bad in results))


main()
