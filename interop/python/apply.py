"""Checks of server-side apply with the Python client; suite.py runs them."""

import json

from kubernetes import client, dynamic
from kubernetes.client.rest import ApiException

from harness import Failed, check, expect_equal, expect_in
from gadgets import GROUP, PLURAL, VERSION, gadget, gadgets_are_served

APPLY = "application/apply-patch+yaml"


def settings(data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}


def managers(metadata):
    """Returns the fields of each manager of an object, as a dictionary or as the client's model."""
    entries = metadata["managedFields"] if isinstance(metadata, dict) else client.ApiClient().sanitize_for_serialization(metadata)["managedFields"]
    key = lambda entry: " ".join(filter(None, [entry["manager"], entry["operation"], entry.get("subresource")]))
    return {key(entry): entry["fieldsV1"] for entry in entries}


def conflict_of(call, *arguments, **options):
    """Returns field and message of each cause of a conflict; the call must fail with one."""
    try:
        made = call(*arguments, **options)
    except ApiException as problem:
        status = json.loads(problem.body)
        expect_equal((problem.status, status["reason"]), (409, "Conflict"), f"the error {status}")
        causes = status["details"]["causes"]
        expect_equal({cause["reason"] for cause in causes}, {"FieldManagerConflict"}, "the reasons of a conflict")
        return sorted((cause["field"], cause["message"]) for cause in causes)
    raise Failed(f"expected a conflict, not {made}")


@check
def the_client_applies_on_the_server(namespace):
    api = client.CoreV1Api()

    def apply(data, manager, **options):
        body = settings(data)
        return api.patch_namespaced_config_map("settings", namespace, body, field_manager=manager, _content_type=APPLY, **options)

    made = apply({"a": "1", "b": "1"}, "one")
    expect_equal(managers(made.metadata), {"one Apply": {"f:data": {"f:a": {}, "f:b": {}}}}, "the managers")
    again = apply({"a": "1", "b": "1"}, "one")
    expect_equal(again.metadata.resource_version, made.metadata.resource_version, "the version after the same apply")
    expect_equal(conflict_of(apply, {"a": "2"}, "two"), [(".data.a", 'conflict with "one"')], "the causes")
    expect_equal(apply({"a": "2"}, "two", force=True, dry_run="All").data, {"a": "2", "b": "1"}, "the data of a dry run")
    expect_equal(api.read_namespaced_config_map("settings", namespace).data, {"a": "1", "b": "1"}, "the data after a dry run")
    made = apply({"a": "2"}, "two", force=True)
    expected = {"one Apply": {"f:data": {"f:b": {}}}, "two Apply": {"f:data": {"f:a": {}}}}
    expect_equal(managers(made.metadata), expected, "the managers after a forced apply")
    expect_equal(apply({"c": "3"}, "one").data, {"a": "2", "c": "3"}, "the data without what was removed")


@check
def the_client_applies_status_and_custom_objects(namespace):
    gadgets_are_served()
    api, place = client.CustomObjectsApi(), (GROUP, VERSION, namespace, PLURAL)
    api.patch_namespaced_custom_object(*place, "gear", gadget("gear", 3), field_manager="one", _content_type=APPLY)
    status = {**gadget("gear", 9), "status": {"phase": "Turning"}}
    made = api.patch_namespaced_custom_object_status(*place, "gear", status, field_manager="two", _content_type=APPLY)
    expect_equal((made["spec"], made["status"]), ({"size": 3}, {"phase": "Turning"}), "spec and status")
    expected = {"one Apply": {"f:spec": {"f:size": {}}}, "two Apply status": {"f:status": {"f:phase": {}}}}
    expect_equal(managers(made["metadata"]), expected, "the managers")
    causes = conflict_of(api.patch_namespaced_custom_object, *place, "gear", gadget("gear", 4), field_manager="two", _content_type=APPLY)
    expect_equal(causes, [(".spec.size", 'conflict with "one"')], "the causes")


@check
def the_dynamic_client_applies_on_the_server(namespace):
    gadgets_are_served()
    api = dynamic.DynamicClient(client.ApiClient())
    maps = api.resources.get(api_version="v1", kind="ConfigMap")
    apply = lambda resource, body, manager, **options: resource.server_side_apply(
        body=body, namespace=namespace, field_manager=manager, **options)
    made = apply(maps, settings({"a": "1"}), "one")
    expect_equal(managers(made.to_dict()["metadata"]), {"one Apply": {"f:data": {"f:a": {}}}}, "the managers")
    causes = conflict_of(apply, maps, settings({"a": "2"}), "two", force_conflicts=False)
    expect_equal(causes, [(".data.a", 'conflict with "one"')], "the causes")
    made = apply(maps, settings({"a": "2"}), "two", force_conflicts=True)
    expect_equal(made.data.to_dict(), {"a": "2"}, "the data after a forced apply")
    gadgets = api.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Gadget")
    apply(gadgets, gadget("gear", 3), "one")
    made = apply(gadgets, gadget("gear", 5), "one")
    expect_equal(made.spec.size, 5, "the size of the custom object")
    try:
        apply(gadgets, gadget("gear", 5), None)
    except ApiException as problem:
        expect_equal(problem.status, 422, "the status without a field manager")
        expect_in("fieldManager: Required value", json.loads(problem.body)["message"])
    else:
        raise Failed("expected an error without a field manager")
