"""Runs kubectl in a separate namespace, and holds the manifests that several checks use."""

import json
import os
import subprocess
import tempfile
import time

from harness import Failed, eventually, expect, expect_in

PATIENCE = 60


class Kubectl:
    """A kubectl, and the namespace of a check."""

    def __init__(self, binary, namespace, home):
        self.binary = binary
        self.namespace = namespace
        self.environment = {**os.environ, "HOME": home, "KUBE_EDITOR": "false"}
        self.minor = 0

    def start(self, *arguments, stdin=None, environment=None):
        return subprocess.Popen(
            [self.binary, "--namespace", self.namespace, *arguments],
            env={**self.environment, **(environment or {})},
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ended(self, *arguments, stdin=None, environment=None):
        """Returns exit code, stdout and stderr."""
        process = self.start(*arguments, stdin=stdin, environment=environment)
        try:
            out, error = process.communicate(stdin, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, error = process.communicate()
            raise Failed(f"kubectl {' '.join(arguments)} did not end\n{out}\n{error}") from None
        return process.returncode, out, error

    def __call__(self, *arguments, stdin=None, environment=None):
        """Returns what kubectl prints; it must succeed."""
        code, out, error = self.ended(*arguments, stdin=stdin, environment=environment)
        expect(code == 0, f"kubectl {' '.join(arguments)}: exit code {code}\n{out}\n{error}")
        return out

    def fails(self, *arguments, stdin=None, code=1):
        """Returns what kubectl prints to stderr; it must fail."""
        actual, out, error = self.ended(*arguments, stdin=stdin)
        expect(actual == code, f"kubectl {' '.join(arguments)}: exit code {actual}, not {code}\n{out}\n{error}")
        return error

    def apply(self, document):
        return self("apply", "-f", "-", stdin=document)

    def apply_on_the_server(self, document, *options):
        return self("apply", "--server-side", *options, "-f", "-", stdin=document)

    def create(self, document):
        return self("create", "-f", "-", stdin=document)

    def json(self, *arguments):
        return json.loads(self(*arguments, "-o", "json"))

    def path(self, kind, name, path):
        """Returns one field of an object, by its JSONPath."""
        return self("get", kind, name, "-o", f"jsonpath={{{path}}}")

    def managers(self, kind, name):
        """Returns the fields of each manager of an object; a key is like "kubectl Apply" or "kubectl Update status"."""
        entries = self.json("get", kind, name, "--show-managed-fields")["metadata"].get("managedFields", [])
        key = lambda entry: " ".join(filter(None, [entry["manager"], entry["operation"], entry.get("subresource")]))
        return {key(entry): entry["fieldsV1"] for entry in entries}

    def is_gone(self, kind, name):
        eventually(lambda: self("get", kind, name, "--ignore-not-found", "-o", "name") == "", f"{kind} {name} is gone")

    def editing_with(self, script):
        """Runs `kubectl edit` with a sed script as the editor."""
        with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False, dir=self.environment["HOME"]) as file:
            file.write(f"#!/bin/sh\nexec sed -i '{script}' \"$1\"\n")
        os.chmod(file.name, 0o755)
        return {"KUBE_EDITOR": file.name}


class Watching:
    """A long-running kubectl, and its output so far."""

    def __init__(self, kubectl, *arguments):
        self.file = tempfile.NamedTemporaryFile("r", dir=kubectl.environment["HOME"])
        with open(self.file.name, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(
                [kubectl.binary, "--namespace", kubectl.namespace, *arguments],
                env=kubectl.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.file.close()

    def text(self):
        with open(self.file.name, encoding="utf-8") as file:
            return file.read()

    def prints(self, part):
        end = time.monotonic() + PATIENCE
        while part not in self.text() and time.monotonic() < end:
            time.sleep(0.05)
        expect_in(part, self.text())


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: server
        image: nginx:1.27
        ports:
        - containerPort: 80
      - name: helper
        image: busybox:1.36
"""

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.interop.k1s.dev
spec:
  group: interop.k1s.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Size, type: string, jsonPath: .spec.size}
    - {name: Phase, type: string, jsonPath: .status.phase, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        description: A widget is what this group is about.
        type: object
        properties:
          spec:
            type: object
            description: What the widget should be.
            required: [size]
            properties:
              size: {type: string, description: How big the widget is., enum: [small, large]}
              replicas: {type: integer, minimum: 0, default: 1}
              parts:
                type: array
                items: {type: object, properties: {name: {type: string}, weight: {type: integer}}}
          status:
            type: object
            properties:
              replicas: {type: integer}
              phase: {type: string}
              conditions:
                type: array
                items:
                  type: object
                  properties: {type: {type: string}, status: {type: string}, reason: {type: string}}
"""

WIDGET = """
apiVersion: interop.k1s.dev/v1
kind: Widget
metadata:
  name: gear
spec:
  size: small
  parts:
  - {name: tooth, weight: 3}
"""

NODE = """
apiVersion: v1
kind: Node
metadata:
  name: {name}
"""


def widgets_are_served(kubectl):
    """Ensures that the custom resource of these checks is served."""
    kubectl.apply(CRD)
    kubectl("wait", "--for=condition=Established", "crd/widgets.interop.k1s.dev", "--timeout=30s")
