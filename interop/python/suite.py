"""Common uses of the official Python client and of kopf. KUBECONFIG names the control plane."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from kubernetes import client, config, dynamic, utils, watch  # noqa: E402
from kubernetes.client.rest import ApiException  # noqa: E402
from kubernetes.leaderelection import electionconfig, leaderelection  # noqa: E402
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock  # noqa: E402

import apply  # noqa: E402, F401  # its checks run first
from gadgets import GROUP, PLURAL, VERSION, gadget, gadgets_are_served  # noqa: E402
from harness import check, eventually, expect, expect_equal, expect_in, run_checks  # noqa: E402


def status_of(call, *arguments, **options):
    """Returns the HTTP status and the reason of a failing call."""
    try:
        call(*arguments, **options)
    except ApiException as problem:
        return problem.status, json.loads(problem.body)["reason"]
    return 200, ""


@check
def the_client_creates_lists_patches_and_deletes(namespace):
    api = client.CoreV1Api()
    made = api.create_namespaced_config_map(namespace, {"metadata": {"name": "one", "labels": {"a": "b"}}, "data": {"x": "1"}})
    expect(made.metadata.uid, "no uid")
    expect_equal([item.metadata.name for item in api.list_namespaced_config_map(namespace, label_selector="a=b").items], ["one"])
    expect_equal(api.patch_namespaced_config_map("one", namespace, {"data": {"y": "2"}}).data, {"x": "1", "y": "2"})
    made.data = {"z": "3"}
    expect_equal(status_of(api.replace_namespaced_config_map, "one", namespace, made), (409, "Conflict"))
    api.delete_namespaced_config_map("one", namespace)
    expect_equal(status_of(api.read_namespaced_config_map, "one", namespace), (404, "NotFound"))


@check
def the_client_patches_with_json_patch_and_strategic_merge(namespace):
    api = client.AppsV1Api()
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "server", "image": "nginx:1"}]}}
    api.create_namespaced_deployment(namespace, {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    })
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "helper", "image": "busybox"}]}}}}
    made = api.patch_namespaced_deployment("web", namespace, patch)
    expect_equal(sorted(item.name for item in made.spec.template.spec.containers), ["helper", "server"])
    made = api.patch_namespaced_deployment("web", namespace, [{"op": "replace", "path": "/spec/replicas", "value": 4}])
    expect_equal(made.spec.replicas, 4)
    expect_equal(api.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 6}}).spec.replicas, 6)
    api.patch_namespaced_deployment_status("web", namespace, {"status": {"replicas": 6}})
    expect_equal(api.read_namespaced_deployment_status("web", namespace).status.replicas, 6)


@check
def a_watch_sees_every_change(namespace):
    api = client.CoreV1Api()
    seen = []

    def change():
        api.create_namespaced_config_map(namespace, {"metadata": {"name": "seen"}})
        api.patch_namespaced_config_map("seen", namespace, {"data": {"a": "b"}})
        api.delete_namespaced_config_map("seen", namespace)

    version = api.list_namespaced_config_map(namespace).metadata.resource_version
    worker = threading.Thread(target=change)
    worker.start()
    stream = watch.Watch()
    options = {"resource_version": version, "field_selector": "metadata.name=seen", "timeout_seconds": 30}
    for event in stream.stream(api.list_namespaced_config_map, namespace, **options):
        seen.append(event["type"])
        if event["type"] == "DELETED":
            stream.stop()
    worker.join()
    expect_equal(seen, ["ADDED", "MODIFIED", "DELETED"])


@check
def a_timed_out_watch_is_resumed(namespace):
    api = client.CoreV1Api()
    for _ in range(2):
        events = list(watch.Watch().stream(api.list_namespaced_config_map, namespace, timeout_seconds=1, allow_watch_bookmarks=True))
        expect(all(event["type"] in ("ADDED", "BOOKMARK") for event in events), str(events))


@check
def custom_objects_are_created_listed_patched_and_deleted(namespace):
    gadgets_are_served()
    api, place = client.CustomObjectsApi(), (GROUP, VERSION, namespace, PLURAL)
    made = api.create_namespaced_custom_object(*place, gadget("gear", 3))
    expect_equal(made["metadata"]["generation"], 1)
    expect_equal(len(api.list_namespaced_custom_object(*place)["items"]), 1)
    expect_equal(api.patch_namespaced_custom_object(*place, "gear", {"spec": {"size": 4}})["spec"], {"size": 4})
    api.patch_namespaced_custom_object_status(*place, "gear", {"status": {"phase": "Turning"}})
    expect_equal(api.get_namespaced_custom_object(*place, "gear")["status"], {"phase": "Turning"})
    expect_equal(status_of(api.create_namespaced_custom_object, *place, gadget("bad", "huge")), (422, "Invalid"))
    api.delete_namespaced_custom_object(*place, "gear")
    expect_equal(status_of(api.get_namespaced_custom_object, *place, "gear"), (404, "NotFound"))


@check
def the_dynamic_client_finds_kinds_and_watches(namespace):
    gadgets_are_served()
    with tempfile.TemporaryDirectory() as folder:
        api = dynamic.DynamicClient(client.ApiClient(), cache_file=f"{folder}/discovery.json")
        gadgets = api.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Gadget")
        gadgets.create(body=gadget("gear", 3), namespace=namespace)
        expect_equal(gadgets.get(name="gear", namespace=namespace).spec.size, 3)
        patch = {"spec": {"size": 5}}
        changed = gadgets.patch(name="gear", namespace=namespace, body=patch, content_type="application/merge-patch+json")
        expect_equal(changed.spec.size, 5)
        events = gadgets.watch(namespace=namespace, timeout=30)
        expect_equal(next(events)["object"].metadata.name, "gear")
        gadgets.delete(name="gear", namespace=namespace)
        expect_equal(gadgets.get(namespace=namespace).items, [])
        services = api.resources.get(api_version="v1", kind="Service")
        expect(services.get(name="kubernetes", namespace="default").spec.clusterIP, "no cluster IP")


@check
def documents_of_a_file_are_created(namespace):
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden"}, "stringData": {"a": "b"}}
    utils.create_from_dict(client.ApiClient(), document, namespace=namespace)
    expect_equal(client.CoreV1Api().read_namespaced_secret("hidden", namespace).data, {"a": "Yg=="})


@check
def versions_and_groups_are_listed(_):
    expect_equal(client.VersionApi().get_code().major, "1")
    expect_in("apps", [group.name for group in client.ApisApi().get_api_versions().groups])
    expect_in("configmaps", [item.name for item in client.CoreV1Api().get_api_resources().resources])


@check
def a_leader_is_elected_on_a_lease(namespace):
    led = threading.Event()
    lock = LeaseLock("leader", namespace, "python")
    election = electionconfig.Config(
        lock, lease_duration=17, renew_deadline=15, retry_period=1,
        onstarted_leading=led.set, onstopped_leading=lambda: None,
    )
    threading.Thread(target=leaderelection.LeaderElection(election).run, daemon=True).start()
    expect(led.wait(30), "no leader within 30 s")
    expect_equal(client.CoordinationV1Api().read_namespaced_lease("leader", namespace).spec.holder_identity, "python")


@check
def a_kopf_operator_reacts_to_creation_update_and_deletion(namespace):
    gadgets_are_served()
    api, core, place = client.CustomObjectsApi(), client.CoreV1Api(), (GROUP, VERSION, namespace, PLURAL)
    read = lambda: api.get_namespaced_custom_object(*place, "gear")
    with Operator(namespace) as operator:
        api.create_namespaced_custom_object(*place, gadget("gear", 3))
        operator.makes(lambda: read().get("status", {}).get("created") == {"size": 3}, "the status after creation")
        expect_equal(read()["metadata"]["finalizers"], ["python.interop.k1s.dev/finalizer"])
        report = core.read_namespaced_config_map("gear-report", namespace)
        expect_equal(report.data, {"size": "3"})
        expect_equal(report.metadata.owner_references[0].uid, read()["metadata"]["uid"])
        api.patch_namespaced_custom_object(*place, "gear", {"spec": {"size": 8}})
        operator.makes(lambda: read()["status"].get("resized") == {"size": 8}, "the status after the update")
        expect_equal(core.read_namespaced_config_map("gear-report", namespace).data, {"size": "8"})
        # Without the owner reference, the report is kept until the check has read it.
        core.patch_namespaced_config_map("gear-report", namespace, {"metadata": {"ownerReferences": None}})
        api.delete_namespaced_custom_object(*place, "gear")
        operator.makes(lambda: status_of(read) == (404, "NotFound"), "the end of the gadget")
        expect_equal(core.read_namespaced_config_map("gear-report", namespace).data, {"size": "8", "gone": "yes"})
        events = lambda: core.list_namespaced_event(namespace, field_selector="involvedObject.name=gear,reason=Reported").items
        operator.makes(events, "an event about the gadget")


class Operator:
    """The operator, as a separate process."""

    def __init__(self, namespace):
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        script = pathlib.Path(__file__).with_name("operator_under_test.py")
        arguments = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", namespace, str(script)]
        self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def makes(self, condition, what):
        try:
            eventually(condition, what, seconds=60)
        except AssertionError as problem:
            with open(self.log.name, encoding="utf-8") as log:
                raise AssertionError(f"{problem}\n{log.read()}") from None


def main():
    config.load_kube_config()

    def namespace_of(_):
        return client.CoreV1Api().create_namespace({"metadata": {"generateName": "python-"}}).metadata.name

    return run_checks("python", namespace_of)


# Not sys.exit: the leader's thread is still running, and can crash the interpreter at shutdown.
code = main()
sys.stdout.flush()
os._exit(code)
