"""A kopf operator: it reports each gadget's size in its status and in a ConfigMap, and cleans up on deletion."""

import kopf
from kubernetes import client, config

config.load_kube_config()


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = "python.interop.k1s.dev/finalizer"


@kopf.on.create("python.interop.k1s.dev", "v1", "gadgets")
def created(name, namespace, spec, body, **_):
    report = {"metadata": {"name": f"{name}-report"}, "data": {"size": str(spec["size"])}}
    kopf.adopt(report, owner=body)
    client.CoreV1Api().create_namespaced_config_map(namespace, report)
    kopf.info(body, reason="Reported", message="its size is in a ConfigMap")
    return {"size": spec["size"]}


@kopf.on.update("python.interop.k1s.dev", "v1", "gadgets")
def resized(name, namespace, spec, **_):
    client.CoreV1Api().patch_namespaced_config_map(f"{name}-report", namespace, {"data": {"size": str(spec["size"])}})
    return {"size": spec["size"]}


@kopf.on.delete("python.interop.k1s.dev", "v1", "gadgets")
def deleted(name, namespace, **_):
    client.CoreV1Api().patch_namespaced_config_map(f"{name}-report", namespace, {"data": {"gone": "yes"}})
