"""Compares the commands of k1s with those of kubectl, on the same server: output, errors and exit codes.

Arguments: kubectl, its name, k1s. Reads are made by both in the same namespace. Changes are made by each in a namespace of its
own; the outputs must be equal but for the names of the namespaces, and what differs between any two objects: ids, revisions
and times. The commands are in compare_commands.py.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import check, eventually, expect, run_checks

import compare_commands as commands

CLOSED_PORT = """\
apiVersion: v1
kind: Config
clusters: [{{name: absent, cluster: {{server: "https://127.0.0.1:{port}"}}}}]
users: [{{name: nobody, user: {{token: none}}}}]
contexts: [{{name: absent, context: {{cluster: absent, user: nobody}}}}]
current-context: absent
"""


class Pair:
    """Both programs, each with its namespace."""

    def __init__(self, kubectl, k1s, run, home):
        self.programs = [("kubectl", kubectl, f"compare-a-{run}"), ("k1s", k1s, f"compare-b-{run}")]
        self.home = home
        self.files = os.path.join(home, "files")
        self.environment = {**os.environ, "HOME": home, "NO_COLOR": "1"}

    def line(self, index, arguments, namespace=None):
        """The command line of a program. OWN in it is the program's namespace; in the namespace "" there is no option."""
        _, binary, own = self.programs[index]
        arguments = [argument.replace("OWN", own) for argument in arguments]
        place = arguments.index("--") if "--" in arguments else len(arguments)
        option = ["--namespace", namespace or own] if namespace != "" else []
        return [binary, *arguments[:place], *option, *arguments[place:]]

    def call(self, index, arguments, namespace=None, stdin=None, environment=None):
        process = subprocess.run(
            self.line(index, arguments, namespace),
            env={**self.environment, **(environment or {})},
            cwd=self.files,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=20,
        )
        return process.returncode, process.stdout, process.stderr

    def must(self, index, arguments, stdin=None):
        code, out, error = self.call(index, arguments, stdin=stdin)
        expect(code == 0, f"{arguments}: {out}{error}")

    def write(self, name, text):
        path = os.path.join(self.files, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def same(self, arguments, calls, tries=1):
        for _ in range(tries):
            theirs, ours = calls()
            if theirs == ours or (" ".join(arguments) in commands.DIFFERENT and theirs[0] == ours[0]):
                return None
        parts = [f"{' '.join(arguments)}"]
        for name, a, b in zip(("exit code", "stdout", "stderr"), theirs, ours):
            if a != b:
                parts.append(f"--- {name} of kubectl\n{a}\n--- {name} of k1s\n{b}")
        return "\n".join(parts)


def setup(pair):
    for name, text in commands.FILES.items():
        pair.write(name, text)
    for index, (_, _, namespace) in enumerate(pair.programs):
        pair.must(0, ["create", "namespace", namespace])
        pair.must(index, ["apply", "--server-side", "-f", "-"], stdin=commands.TEAMS)
        pair.must(index, ["wait", "--for=condition=Established", "crd/crews.compare.example.dev"])
        manifests = "---\n".join([commands.MANIFESTS, commands.CREW, commands.EVENTS])
        pair.must(index, ["apply", "--server-side", "-f", "-"], stdin=manifests.replace("OWN", namespace))


def masked(pair, told):
    """Without what differs between two objects."""

    def mask(text):
        for _, _, namespace in pair.programs:
            text = text.replace(namespace, "NAMESPACE")
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
        text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+ [+-]\d+|Z)", "TIME", text)
        return re.sub(r"\"?resourceVersion\"?: \"\d+\"|/tmp/\S+", "…", text)

    return told[0], mask(told[1]), mask(told[2])


def each_in_its_own(pair, table, **options):
    """Lets each program do all of this in a namespace of its own."""
    failures = []
    for arguments in table:
        both = lambda: tuple(masked(pair, pair.call(index, arguments, **options)) for index in range(2))
        failures.append(pair.same(arguments, both))
    report(failures, len(table))


@check
def objects_are_shown_as_kubectl_shows_them(pair):
    failures = []
    shared = pair.programs[0][2]
    for arguments in commands.READS:
        both = lambda: tuple(pair.call(index, arguments, namespace=shared) for index in range(2))
        # Ages may change between the two calls.
        failures.append(pair.same(arguments, both, tries=3))
    report(failures, len(commands.READS))


@check
def labels_are_listed_as_kubectl_lists_them(pair):
    failures = []
    shared = pair.programs[0][2]
    for arguments in commands.LISTS_IN_ANY_ORDER:

        def both():
            told = [pair.call(index, arguments, namespace=shared) for index in range(2)]
            return tuple((code, sorted(out.splitlines()), error) for code, out, error in told)

        failures.append(pair.same(arguments, both))
    report(failures, len(commands.LISTS_IN_ANY_ORDER))


@check
def changes_are_told_in_the_words_of_kubectl(pair):
    each_in_its_own(pair, commands.CHANGES)


@check
def objects_are_generated_as_kubectl_generates_them(pair):
    table = []
    for arguments in commands.GENERATED:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        table.append([*arguments[:end], "--dry-run=client", "-o", "yaml", *arguments[end:]])
        table.append(arguments)
    each_in_its_own(pair, table)


@check
def applies_prune_and_take_over_as_those_of_kubectl(pair):
    each_in_its_own(pair, commands.APPLIES)


@check
def patches_are_told_in_the_words_of_kubectl(pair):
    each_in_its_own(pair, commands.PATCHES)


@check
def deletes_are_told_in_the_words_of_kubectl(pair):
    each_in_its_own(pair, commands.DELETES)


@check
def edits_are_told_in_the_words_of_kubectl(pair):
    failures = []
    for editor, arguments in commands.EDITS:
        environment = {"KUBE_EDITOR": editor}
        both = lambda: tuple(masked(pair, pair.call(index, arguments, environment=environment)) for index in range(2))
        failures.append(pair.same([f"KUBE_EDITOR={editor}", *arguments], both))
    report(failures, len(commands.EDITS))


@check
def dry_runs_without_a_namespace_add_none(pair):
    each_in_its_own(pair, commands.WITHOUT_NAMESPACE, namespace="")


@check
def watches_begin_as_those_of_kubectl(pair):
    failures = []
    for arguments, lines in commands.WATCHES:

        def both():
            with ThreadPoolExecutor(2) as together:
                return tuple(together.map(lambda index: begin(pair, index, arguments, lines), range(2)))

        failures.append(pair.same(arguments, both, tries=3))
    report(failures, len(commands.WATCHES))


def begin(pair, index, arguments, lines):
    """What a watch shows at first: until it has printed this many lines, and a moment longer, in which no more may follow."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        command = pair.line(index, arguments, pair.programs[0][2])
        process = subprocess.Popen(
            command, env=pair.environment, cwd=pair.files, stdin=subprocess.DEVNULL, stdout=out, stderr=error
        )
        # The program shares the offset of the file, which must not move.
        text = lambda file: os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()
        try:
            eventually(lambda: text(out).count("\n") >= lines or process.poll() is not None, f"{lines} lines of {command}")
            if process.poll() is None:
                time.sleep(0.3)
            return process.poll(), text(out), text(error)
        finally:
            process.kill()
            process.wait()


@check
def a_server_that_is_not_there_is_named_as_kubectl_names_it(pair):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    pair.write("absent/config", CLOSED_PORT.format(port=port))
    failures = []
    for arguments in commands.ABSENT:
        arguments = [*arguments, "--kubeconfig", "absent/config"]

        def both():
            told = [pair.call(index, arguments) for index in range(2)]
            # kubectl also logs every try of its discovery.
            return tuple((code, out, error.splitlines()[-1:]) for code, out, error in told)

        failures.append(pair.same(arguments, both))
    report(failures, len(commands.ABSENT))


def report(failures, count):
    failures = [failure for failure in failures if failure]
    expect(not failures, f"{len(failures)} of {count} commands differ\n" + "\n\n".join(failures))


def main():
    kubectl, name, k1s = sys.argv[1:4]
    with tempfile.TemporaryDirectory(prefix="k1s-interop-") as home:
        run = [int(time.time())]

        def fresh(_):
            run[0] += 1
            pair = Pair(os.path.abspath(kubectl), os.path.abspath(k1s), f"{run[0]:x}", os.path.join(home, str(run[0])))
            setup(pair)
            return pair

        return run_checks(f"k1s beside kubectl {name}", fresh)


sys.exit(main())
