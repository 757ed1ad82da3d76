"""The custom resource of the checks."""

from kubernetes import client
from kubernetes.client.rest import ApiException

from harness import eventually, expect_equal

GROUP, VERSION, PLURAL = "python.interop.k1s.dev", "v1", "gadgets"

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "singular": "gadget", "kind": "Gadget"},
        "versions": [{
            "name": VERSION,
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }},
        }],
    },
}


def gadget(name, size):
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Gadget", "metadata": {"name": name}, "spec": {"size": size}}


def gadgets_are_served():
    """Ensures that the custom resource of these checks is served."""
    api = client.ApiextensionsV1Api()
    try:
        api.create_custom_resource_definition(DEFINITION)
    except ApiException as problem:
        expect_equal(problem.status, 409)

    def established():
        conditions = api.read_custom_resource_definition(DEFINITION["metadata"]["name"]).status.conditions or []
        return any(condition.type == "Established" and condition.status == "True" for condition in conditions)

    eventually(established, "the custom resource is established")
