"""Compares the commands of k1s with those of kubectl, on the same server: output, errors and exit codes.

Arguments: kubectl, its name, k1s. Reads are made by both in the same namespace. Changes are made by each in a namespace of its
own; the outputs must be equal but for the names of the namespaces, and what differs between any two objects: ids, revisions
and times.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import check, expect, run_checks

MANIFESTS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels: {app: web, tier: front}
  annotations: {note: "a: b", empty: ""}
data:
  number: "12"
  truth: "true"
  lines: "a\\nb\\n"
  indented: "  a\\nb"
  quote: 'it''s "quoted"'
  tab: "a\\tb"
  star: "*"
  date: "2024-01-02"
  html: "<a href='x'>&</a>"
  key10: x
  key9: "y"
---
apiVersion: v1
kind: Secret
metadata: {name: token, labels: {app: web}}
stringData: {password: secret}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "nginx:1", resources: {limits: {cpu: 500m, memory: 1Gi}}}
      - {name: side, image: "busybox:1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, labels: {app: api}}
spec:
  replicas: 10
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
      - {name: main, image: "api:1"}
"""

TEAMS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crews.compare.example.dev}
spec:
  group: compare.example.dev
  scope: Namespaced
  names: {plural: crews, singular: crew, kind: Crew, shortNames: [cw]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Ready, type: boolean, jsonPath: .spec.ready}
    - {name: Note, type: string, jsonPath: .spec.note, priority: 1}
    schema:
      openAPIV3Schema:
        description: A crew of people.
        type: object
        properties:
          spec:
            description: What is wanted.
            type: object
            required: [size]
            properties:
              size: {type: integer, description: How many people there are in the crew.}
              ready: {type: boolean}
              note: {type: string}
              members: {type: array, items: {type: object, properties: {name: {type: string, description: A name.}}}}
"""

CREW = """\
apiVersion: compare.example.dev/v1
kind: Crew
metadata: {name: red}
spec: {size: 3, ready: true, note: "first\\nsecond", members: [{name: a}, {name: b}]}
"""

READS = [
    ["get", "configmap", "settings"],
    ["get", "cm", "settings", "-o", "yaml"],
    ["get", "cm", "settings", "-o", "json"],
    ["get", "cm/settings", "-o", "yaml", "--show-managed-fields"],
    ["get", "cm/settings", "secret/token"],
    ["get", "cm,secret,deploy"],
    ["get", "deployments"],
    ["get", "deploy", "-o", "wide"],
    ["get", "deploy", "--show-labels"],
    ["get", "deploy", "-L", "app,tier"],
    ["get", "deploy", "--no-headers"],
    ["get", "deploy", "--sort-by=.spec.replicas"],
    ["get", "deploy", "--sort-by={.metadata.name}"],
    ["get", "deploy", "-o", "name"],
    ["get", "deploy,svc", "-o", "name"],
    ["get", "deploy", "-o", "yaml"],
    ["get", "deploy", "-o", "json"],
    ["get", "deploy", "web", "-o", "yaml"],
    ["get", "svc", "web", "-o", "yaml"],
    ["get", "svc"],
    ["get", "svc", "-o", "wide"],
    ["get", "secret", "token", "-o", "jsonpath={.data.password}"],
    ["get", "all"],
    ["get", "all", "-l", "app=web"],
    ["get", "cm", "-l", "app in (web),tier!=back", "-o", "name"],
    ["get", "cm", "--field-selector", "metadata.name=settings"],
    ["get", "cm", "--field-selector", "nope=x"],
    ["get", "cm", "-l", "a b"],
    ["get", "deploy.apps/web"],
    ["get", "deployments.v1.apps", "web"],
    ["get", "Deployment", "web"],
    ["get", "deploy", "-o", "jsonpath={.items[*].metadata.name}"],
    ["get", "deploy", "-o", "jsonpath={range .items[*]}{.metadata.name}{'\\t'}{.spec.replicas}{'\\n'}{end}"],
    ["get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0]}"],
    ["get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[?(@.name=='side')].image}"],
    ["get", "deploy", "web", "-o", "jsonpath={.nope}"],
    ["get", "deploy", "web", "-o", "jsonpath={.spec"],
    ["get", "deploy", "-o", "jsonpath-as-json={.items[*].metadata.labels}"],
    ["get", "deploy", "-o", "custom-columns=NAME:.metadata.name,IMAGES:.spec.template.spec.containers[*].image,X:.nope"],
    ["get", "deploy", "web", "-o", "custom-columns=L:metadata.labels", "--no-headers"],
    ["get", "deploy", "-o", "nope"],
    ["get", "deploy", "-o", "jsonpath="],
    ["get", "cm", "nope"],
    ["get", "cm", "nope", "settings"],
    ["get", "cm", "nope", "settings", "-o", "name"],
    ["get", "cm", "nope", "--ignore-not-found"],
    ["get", "nope"],
    ["get", "nope.example.dev", "x"],
    ["get", "pods"],
    ["get", "pods", "-o", "name"],
    ["get", "pods", "-o", "json"],
    ["get", "cm", "settings", "-A"],
    ["get", "crews"],
    ["get", "cw", "-o", "wide"],
    ["get", "cw", "red", "-o", "yaml"],
    ["get", "crd", "crews.compare.example.dev", "-o", "name"],
    ["get", "ns", "kube-system", "--show-labels"],
    ["get", "deploy", "web", "--subresource=scale", "-o", "jsonpath={.spec.replicas}"],
    ["get", "--raw", "/version"],
    ["get", "--raw", "/nope"],
    ["api-resources"],
    ["api-resources", "-o", "wide"],
    ["api-resources", "-o", "name", "--namespaced=false"],
    ["api-resources", "--api-group=apps", "--no-headers"],
    ["explain", "deployment"],
    ["explain", "deployment.spec.strategy"],
    ["explain", "pod.spec.containers"],
    ["explain", "pod.spec.containers.imagePullPolicy"],
    ["explain", "pod.spec.containers.resources.limits"],
    ["explain", "pvc.spec.accessModes"],
    ["explain", "service.spec.ports.targetPort"],
    ["explain", "crd.spec.versions.schema.openAPIV3Schema"],
    ["explain", "job.spec", "--recursive"],
    ["explain", "node.status"],
    ["explain", "crew"],
    ["explain", "crew.spec"],
    ["explain", "crew.spec.size"],
    ["explain", "crew.spec.members"],
    ["explain", "crew", "--recursive"],
    ["explain", "crew.nope"],
    ["events"],
    ["wait", "cm/settings", "--for=jsonpath={.data.number}=12"],
    ["wait", "cm/settings", "--for=jsonpath={.data.number}=13", "--timeout=1s"],
    ["wait", "deploy/web", "--for=condition=Available", "--timeout=1s"],
    ["wait", "cm/nope", "--for=condition=Ready", "--timeout=1s"],
    ["wait", "cm/nope", "--for=delete", "--timeout=1s"],
    ["label", "cm", "settings", "--list"],
]

# Files are in the working directory; those with a number change what was there before.
CHANGES = [
    ["create", "configmap", "made", "--from-literal=a=b", "--from-literal=c=d"],
    ["create", "configmap", "made"],
    ["create", "configmap", "dry", "--dry-run=client", "-o", "yaml"],
    ["create", "configmap", "dry", "--dry-run=server"],
    ["create", "configmap", "files", "--from-file=one.yaml", "--from-file=other=one.yaml"],
    ["get", "cm", "files", "-o", "jsonpath={.data.other}"],
    ["create", "secret", "generic", "hidden", "--from-literal=a=b"],
    ["create", "serviceaccount", "robot"],
    ["create", "-f", "one.yaml"],
    ["create", "-f", "one.yaml"],
    ["create", "-f", "unknown-kind.yaml"],
    ["create", "-f", "invalid.yaml"],
    ["create", "-f", "missing.yaml"],
    ["delete", "-f", "one.yaml"],
    ["delete", "-f", "one.yaml"],
    ["delete", "-f", "one.yaml", "--ignore-not-found"],
    ["apply", "-f", "one.yaml"],
    ["apply", "-f", "one.yaml"],
    ["apply", "-f", "one.2.yaml"],
    ["get", "cm", "one", "-o", "jsonpath={.data}"],
    ["apply", "-f", "one.yaml", "--dry-run=client"],
    ["apply", "-f", "one.yaml", "--dry-run=server"],
    ["apply", "-f", "."],
    ["apply", "-f", "folder"],
    ["apply", "-f", "folder", "-R"],
    ["apply", "-f", "folder", "-R", "-o", "name"],
    ["apply", "-k", "kustom"],
    ["apply", "-f", "missing.yaml"],
    ["apply", "--server-side", "-f", "server.yaml"],
    ["diff", "-f", "server.yaml", "--server-side"],
    ["label", "cm", "one", "a=b"],
    ["label", "cm", "one", "a=b"],
    ["label", "cm", "one", "a=c"],
    ["label", "cm", "one", "a=c", "--overwrite"],
    ["label", "cm", "one", "nope-"],
    ["label", "cm", "one", "a-"],
    ["label", "cm", "one", "bad=a b"],
    ["label", "cm", "nope", "a=b"],
    ["label", "cm", "-l", "app=none", "a=b"],
    ["label", "cm", "one", "x=y", "--dry-run=client"],
    ["annotate", "cm", "one", "a=b"],
    ["annotate", "cm", "one", "a=c"],
    ["annotate", "cm", "one", "a=c", "--overwrite"],
    ["annotate", "cm", "one", "a-"],
    ["scale", "deploy", "web", "--replicas=3"],
    ["scale", "deploy/web", "--replicas=3", "--current-replicas=1"],
    ["scale", "cm/one", "--replicas=3"],
    ["scale", "deploy/nope", "--replicas=3"],
    ["patch", "deploy", "web", "-p", '{"spec":{"replicas":4}}'],
    ["patch", "deploy", "web", "-p", '{"spec":{"replicas":4}}'],
    ["patch", "deploy", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":5}]'],
    ["patch", "deploy", "web", "--type=json", "-p", '[{"op":"test","path":"/spec/replicas","value":9}]'],
    ["patch", "deploy", "web", "--type=merge", "-p", "spec: {replicas: 6}"],
    ["patch", "deploy", "web", "-p", '{"spec":{"replicas":"x"}}'],
    ["patch", "deploy", "web", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":7}}'],
    ["patch", "crew", "red", "--type=merge", "-p", '{"spec":{"size":"x"}}'],
    ["get", "deploy", "web", "-o", "jsonpath={.spec.replicas}"],
    ["wait", "cm/one", "--for=create", "--timeout=1s"],
    ["delete", "cm", "one", "--dry-run=client"],
    ["delete", "cm", "one", "--dry-run=server"],
    ["delete", "cm", "one", "nope"],
    ["delete", "cm", "one", "-o", "name"],
    ["delete", "cm", "-l", "app=none"],
    ["delete", "deploy", "web", "--cascade=orphan"],
    ["delete", "deploy,svc", "--all"],
    ["delete", "secret/hidden", "sa/robot"],
    ["delete", "cm"],
]

FILES = {
    "one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: '1', b: '2'}\n",
    "one.2.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: '3'}\n",
    "unknown-kind.yaml": "apiVersion: nope.example.dev/v1\nkind: Nope\nmetadata: {name: x}\n",
    "invalid.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: -1}\n",
    "server.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: server}\ndata: {a: '1'}\n",
    "folder/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    "folder/b.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}',
    "folder/sub/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
    "kustom/kustomization.yaml": "resources: [a.yaml, b.json]\n",
    "kustom/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ka}\n",
    "kustom/b.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kb"}}',
}

# Where the outputs differ on purpose, and why. The rest of the comparison still holds: exit codes are equal.
DIFFERENT = {
    "get deploy -o nope": "kubectl also has go templates",
    "label cm one bad=a b": "kubectl checks values itself; here the server does",
    "label cm -l app=none a=b": "kubectl is silent about finding nothing",
    "scale deploy/nope --replicas=3": "kubectl puts another error in front",
    "delete cm": "the hint",
    "create configmap dry --dry-run=client -o yaml": "older versions of kubectl add an empty creation time",
}


class Pair:
    """Both programs, each with its namespace."""

    def __init__(self, kubectl, k1s, run, home):
        self.programs = [("kubectl", kubectl, f"compare-a-{run}"), ("k1s", k1s, f"compare-b-{run}")]
        self.home = home
        self.environment = {**os.environ, "HOME": home, "NO_COLOR": "1"}

    def call(self, index, arguments, namespace=None, stdin=None):
        _, binary, own = self.programs[index]
        process = subprocess.run(
            [binary, *arguments, "--namespace", namespace or own],
            env=self.environment,
            cwd=os.path.join(self.home, "files"),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return process.returncode, process.stdout, process.stderr

    def must(self, index, arguments, stdin=None):
        code, out, error = self.call(index, arguments, stdin=stdin)
        expect(code == 0, f"{arguments}: {out}{error}")

    def same(self, arguments, calls, tries=1):
        for _ in range(tries):
            theirs, ours = calls()
            if theirs == ours:
                return None
        if " ".join(arguments) in DIFFERENT and theirs[0] == ours[0]:
            return None
        parts = [f"{' '.join(arguments)}"]
        for name, a, b in zip(("exit code", "stdout", "stderr"), theirs, ours):
            if a != b:
                parts.append(f"--- {name} of kubectl\n{a}\n--- {name} of k1s\n{b}")
        return "\n".join(parts)


def setup(pair):
    files = os.path.join(pair.home, "files")
    for name, text in FILES.items():
        path = os.path.join(files, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    for index, (_, _, namespace) in enumerate(pair.programs):
        pair.must(0, ["create", "namespace", namespace])
        pair.must(index, ["apply", "--server-side", "-f", "-"], stdin=TEAMS)
        pair.must(index, ["wait", "--for=condition=Established", "crd/crews.compare.example.dev"])
        pair.must(index, ["apply", "--server-side", "-f", "-"], stdin=MANIFESTS + "---\n" + CREW)


def masked(pair, told):
    """Without what differs between two objects."""

    def mask(text):
        for _, _, namespace in pair.programs:
            text = text.replace(namespace, "NAMESPACE")
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
        return re.sub(r"resourceVersion: \"\d+\"|/tmp/\S+", "…", text)

    return told[0], mask(told[1]), mask(told[2])


@check
def objects_are_shown_as_kubectl_shows_them(pair):
    failures = []
    shared = pair.programs[0][2]
    for arguments in READS:
        both = lambda: tuple(pair.call(index, arguments, namespace=shared) for index in range(2))
        # Ages may change between the two calls.
        failures.append(pair.same(arguments, both, tries=3))
    report(failures, len(READS))


@check
def changes_are_told_in_the_words_of_kubectl(pair):
    failures = []
    for arguments in CHANGES:
        both = lambda: tuple(masked(pair, pair.call(index, arguments)) for index in range(2))
        failures.append(pair.same(arguments, both))
    report(failures, len(CHANGES))


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
