"""Common uses of helm. Usage: suite.py HELM KUBECTL, with KUBECONFIG set."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent
sys.path[:0] = [str(FOLDER.parent), str(FOLDER.parent / "kubectl")]

from driver import Kubectl  # noqa: E402
from harness import check, expect, expect_equal, expect_in, run_checks  # noqa: E402

OBJECTS = ["configmap/web-settings", "deployment.apps/web", "service/web"]


class Helm:
    """A helm, and the namespace of a check, which kubectl reads and changes."""

    def __init__(self, binary, kubectl):
        self.binary = binary
        self.k = kubectl
        self.environment = {**kubectl.environment, "HELM_NAMESPACE": kubectl.namespace}

    def ended(self, *arguments):
        """Returns exit code, stdout and stderr."""
        ended = subprocess.run([self.binary, *arguments], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        return ended.returncode, ended.stdout, ended.stderr

    def __call__(self, *arguments):
        """Returns what helm prints; it must succeed."""
        code, out, error = self.ended(*arguments)
        expect(code == 0, f"helm {' '.join(arguments)}: expected exit code 0, not {code}\n{out}\n{error}")
        return out

    def fails(self, *arguments):
        """Returns what helm prints to stderr; it must fail."""
        code, out, error = self.ended(*arguments)
        expect(code != 0, f"helm {' '.join(arguments)}: expected it to fail\n{out}\n{error}")
        return error

    def install(self, *options):
        return self("install", "web", str(FOLDER / "chart"), *options)

    def upgrade(self, *options):
        return self("upgrade", "web", str(FOLDER / "chart"), *options)

    def json(self, *arguments):
        return json.loads(self(*arguments, "-o", "json"))

    def settings(self):
        return self.k.json("get", "configmap", "web-settings")["data"]

    def versions(self):
        """Returns the resource version of each object of the release."""
        return {name: self.k("get", name, "-o", "jsonpath={.metadata.resourceVersion}") for name in OBJECTS}


@check
def install_applies_on_the_server(helm):
    expect_in("STATUS: deployed", helm.install())
    release, = helm.json("list")
    expect_equal((release["name"], release["revision"], release["status"]), ("web", "1", "deployed"), "the release")
    expect_equal(helm.settings(), {"greeting": "hello", "colour": "red"}, "the settings")
    for kind, name in [("configmap", "web-settings"), ("deployment", "web"), ("service", "web")]:
        expect_equal(list(helm.k.managers(kind, name)), ["helm Apply"], f"the managers of {kind} {name}")
    owned = helm.k.managers("configmap", "web-settings")["helm Apply"]
    expect_equal(owned["f:data"], {"f:greeting": {}, "f:colour": {}}, "the fields of helm")
    expect_equal(helm.json("get", "metadata", "web")["applyMethod"], "ssa", "the method of the release")
    expect_in("cannot reuse a name that is still in use", helm.fails("install", "web", str(FOLDER / "chart")))


@check
def upgrade_changes_and_removes_only_its_own_fields(helm):
    helm.install()
    helm.k("label", "configmap", "web-settings", "team=blue")
    helm.k("patch", "configmap", "web-settings", "--type=merge", "-p", '{"data":{"extra":"by another"}}')
    before = helm.versions()
    expect_in("STATUS: deployed", helm.upgrade())
    expect_equal(helm.versions(), before, "the versions after an upgrade without changes")
    helm.upgrade("--set", "image=nginx:1.28,settings.greeting=hi,settings.colour=null")
    expect_equal(helm.settings(), {"greeting": "hi", "extra": "by another"}, "the settings")
    expect_equal(helm.k.path("deployment", "web", ".spec.template.spec.containers[0].image"), "nginx:1.28", "the image")
    expect_equal(helm.k.path("configmap", "web-settings", ".metadata.labels.team"), "blue", "the label of another manager")
    helm.upgrade("--set", "workload=false")
    expect_in("not found", helm.k.fails("get", "deployment", "web"))


@check
def rollback_restores_an_earlier_revision(helm):
    helm.install()
    helm.upgrade("--set", "image=nginx:1.28,settings.added=yes,settings.greeting=hi")
    expect_in("Rollback was a success", helm("rollback", "web", "1"))
    expect_equal(helm.settings(), {"greeting": "hello", "colour": "red"}, "the settings after the rollback")
    expect_equal(helm.k.path("deployment", "web", ".spec.template.spec.containers[0].image"), "nginx:1.27", "the image after the rollback")
    history = [(entry["revision"], entry["status"]) for entry in helm.json("history", "web")]
    expect_equal(history, [(1, "superseded"), (2, "superseded"), (3, "deployed")], "the history")
    expect_equal(list(helm.k.managers("configmap", "web-settings")), ["helm Apply"], "the managers after the rollback")


@check
def conflicts_with_another_manager_fail_until_forced(helm):
    helm.install()
    helm.k("patch", "configmap", "web-settings", "--type=merge", "-p", '{"data":{"greeting":"patched"}}')
    helm.k("scale", "deployment", "web", "--replicas=5")
    said = helm.fails("upgrade", "web", str(FOLDER / "chart"), "--set", "settings.greeting=hi")
    expect_in('conflict with "kubectl-patch" using v1: .data.greeting', said)
    expect_in('with subresource "scale" using apps/v1: .spec.replicas', said)
    expect_equal(helm.settings()["greeting"], "patched", "the setting after a conflict")
    expect_equal(helm.json("status", "web")["info"]["status"], "failed", "the status of the release after a conflict")
    helm.upgrade("--set", "settings.greeting=hi", "--force-conflicts")
    expect_equal(helm.settings()["greeting"], "hi", "the setting after --force-conflicts")
    expect_equal(helm.k.path("deployment", "web", ".spec.replicas"), "2", "the replicas after --force-conflicts")
    expect_equal(list(helm.k.managers("configmap", "web-settings")), ["helm Apply"], "the managers after --force-conflicts")


@check
def a_release_of_the_client_is_migrated_to_the_server(helm):
    helm.install("--server-side=false")
    expect_equal(list(helm.k.managers("configmap", "web-settings")), ["helm Update"], "the managers before the migration")
    helm.upgrade("--server-side=false", "--set", "image=nginx:1.28")
    helm.upgrade("--server-side=true", "--set", "image=nginx:1.29,settings.colour=null")
    expect_equal(helm.settings(), {"greeting": "hello"}, "the settings after the migration")
    for kind, name in [("configmap", "web-settings"), ("deployment", "web"), ("service", "web")]:
        expect_equal(list(helm.k.managers(kind, name)), ["helm Apply"], f"the managers of {kind} {name} after the migration")


@check
def a_dry_run_on_the_server_changes_nothing(helm):
    expect_in("nginx:1.27", helm.install("--dry-run=server"))
    expect_equal(helm.json("list"), [], "the releases after a dry run")
    expect_in("not found", helm.k.fails("get", "configmap", "web-settings"))
    helm.install()
    before = helm.versions()
    helm.upgrade("--dry-run=server", "--set", "settings.greeting=hi")
    expect_equal(helm.versions(), before, "the versions after a dry run")


@check
def wait_sees_ready_objects(helm):
    expect_in("STATUS: deployed", helm.install("--wait", "--timeout=30s", "--set", "workload=false"))


@check
def uninstall_deletes_every_object(helm):
    helm.install()
    expect_in('release "web" uninstalled', helm("uninstall", "web", "--wait", "--timeout=30s"))
    left = helm.k("get", "configmaps,services,deployments,secrets", "-l", "app.kubernetes.io/managed-by=Helm", "-o", "name")
    expect_equal(left, "", "the objects after uninstall")
    expect_equal(helm.k("get", "secrets", "-l", "owner=helm", "-o", "name"), "", "the revisions after uninstall")
    expect_equal(helm.json("list"), [], "the releases after uninstall")


def main():
    binary, kubectl = sys.argv[1:3]
    with tempfile.TemporaryDirectory(prefix="k1s-interop-") as home:
        first = Kubectl(kubectl, "default", home)

        def in_separate_namespace(check_name):
            namespace = f"helm-{os.getpid()}-{check_name.replace('_', '-')}"[:50].rstrip("-")
            first("create", "namespace", namespace)
            return Helm(binary, Kubectl(kubectl, namespace, home))

        return run_checks("helm", in_separate_namespace)


sys.exit(main())
