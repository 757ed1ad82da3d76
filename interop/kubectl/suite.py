"""Common uses of kubectl. Usage: suite.py KUBECTL NAME, with KUBECONFIG set."""

import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import access  # noqa: E402, F401  # their checks run first
import apply  # noqa: E402, F401
from driver import CRD, DEPLOYMENT, NODE, WIDGET, Kubectl, Watching, widgets_are_served  # noqa: E402
from harness import check, eventually, expect, expect_equal, expect_in, run_checks  # noqa: E402

# The cluster


@check
def version_shows_the_server(k):
    expect_in("v1.", k.json("version")["serverVersion"]["gitVersion"])


@check
def cluster_info_names_the_control_plane(k):
    expect_in("is running at", k("cluster-info"))
    expect_in("https://", k("cluster-info"))


@check
def raw_paths_are_answered(k):
    expect_equal(k("get", "--raw", "/healthz"), "ok")
    expect_equal(k("get", "--raw", "/readyz"), "ok")
    expect_in("+", k("get", "--raw", "/livez?verbose"))
    expect_equal(json.loads(k("get", "--raw", "/api/v1/namespaces/default"))["metadata"]["name"], "default")
    expect_in("(NotFound)", k.fails("get", "--raw", "/no/such/path"))


@check
def api_versions_lists_groups_and_custom_groups(k):
    widgets_are_served(k)
    lines = k("api-versions").split()
    for version in ["v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "interop.k1s.dev/v1"]:
        expect(version in lines, f"{version} is not in {lines}")


@check
def api_resources_lists_built_in_and_custom_kinds(k):
    widgets_are_served(k)
    rows = {line.split()[0]: line.split() for line in k("api-resources", "-o", "wide").splitlines()}
    expect_equal(rows["configmaps"][1:5], ["cm", "v1", "true", "ConfigMap"])
    expect_equal(rows["deployments"][1:5], ["deploy", "apps/v1", "true", "Deployment"])
    expect_equal(rows["widgets"][1:5], ["wd", "interop.k1s.dev/v1", "true", "Widget"])
    expect_in("create", rows["widgets"][5])
    expect_in("namespaces", k("api-resources", "--namespaced=false", "-o", "name"))


@check
def whoami_shows_the_user(k):
    if k.minor < 28:
        expect_in("selfsubjectreviews", k.fails("auth", "whoami"))
        return
    expect_in("system:masters", k("auth", "whoami"))


@check
def can_i_answers(k):
    expect_equal(k("auth", "can-i", "create", "pods").strip(), "yes")
    expect_in("*.*", k("auth", "can-i", "--list"))


@check
def top_reports_that_there_are_no_metrics(k):
    expect_in("Metrics API not available", k.fails("top", "pods"))


# Creating and getting


@check
def a_configmap_is_shown_in_every_format(k):
    expect_equal(k("create", "configmap", "one", "--from-literal=a=1").strip(), "configmap/one created")
    expect_equal(k("get", "cm", "one").split()[:5], ["NAME", "DATA", "AGE", "one", "1"])
    expect_in("one", k("get", "cm", "one", "-o", "wide"))
    expect_in("data:\n  a: \"1\"\nkind: ConfigMap\n", k("get", "cm", "one", "-o", "yaml"))
    expect_equal(k.json("get", "cm", "one")["data"], {"a": "1"})
    expect_equal(k.path("cm", "one", ".data.a"), "1")
    expect_equal(k("get", "cm", "one", "-o", "name").strip(), "configmap/one")
    expect_equal(k("get", "cm", "one", "-o", "custom-columns=A:.data.a", "--no-headers").strip(), "1")
    expect_equal(k("get", "cm", "one", "-o", "go-template={{.data.a}}"), "1")


@check
def existing_and_missing_objects_are_reported_in_the_usual_words(k):
    k("create", "configmap", "one")
    expect_equal(k.fails("create", "configmap", "one").strip(), 'error: failed to create configmap: configmaps "one" already exists')
    expect_equal(k.fails("get", "cm", "two").strip(), 'Error from server (NotFound): configmaps "two" not found')
    expect_in('doesn\'t have a resource type "nonsense"', k.fails("get", "nonsense"))
    expect_in("No resources found in", k.ended("get", "secrets")[2])


@check
def lists_are_selected_sorted_and_chunked(k):
    for name, tier in [("a", "front"), ("b", "back"), ("c", "front"), ("d", "back"), ("e", "front")]:
        k("create", "configmap", name)
        k("label", "configmap", name, f"tier={tier}")
    names = lambda *arguments: k("get", "cm", "-o", "jsonpath={.items[*].metadata.name}", "-l", "tier", *arguments).split()
    expect_equal(names("-l", "tier=front"), ["a", "c", "e"])
    expect_equal(names("-l", "tier notin (front),tier"), ["b", "d"])
    expect_equal(names("--field-selector", "metadata.name!=c"), ["a", "b", "d", "e"])
    expect_equal(names("--chunk-size=2"), ["a", "b", "c", "d", "e"])
    expect_equal(k("get", "cm", "-l", "tier", "--sort-by={.metadata.labels.tier}", "--no-headers", "-o", "name").split()[0], "configmap/b")
    expect_in("tier=front", k("get", "cm", "a", "--show-labels"))
    expect_in("TIER", k("get", "cm", "-L", "tier"))
    expect_in(k.namespace, k("get", "cm", "-A", "-l", "tier"))


@check
def get_watch_sees_changes_and_the_deletion(k):
    k("create", "configmap", "seen")
    with Watching(k, "get", "cm", "seen", "-w", "-o", "jsonpath={.data.step} ") as watching:
        eventually(lambda: " " in watching.text(), "the first line")
        k("patch", "cm", "seen", "-p", '{"data":{"step":"second"}}')
        watching.prints("second")
    with Watching(k, "get", "cm", "-w", "--output-watch-events", "--no-headers") as watching:
        watching.prints("seen")
        k("delete", "cm", "seen")
        watching.prints("DELETED")


@check
def objects_of_several_kinds_are_created_from_one_file(k):
    documents = "---\n".join([DEPLOYMENT, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"])
    expect_equal(k.create(documents).split("\n")[:2], ["deployment.apps/web created", "configmap/settings created"])
    expect_in("deployment.apps/web", k("get", "all", "-o", "name"))
    expect_in('deployment.apps "web" deleted', k("delete", "-f", "-", stdin=documents))


@check
def unknown_fields_are_refused(k):
    document = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: odd}\ndatum: {a: b}\n"
    expect_in('unknown field "datum"', k.fails("create", "-f", "-", stdin=document))
    expect_in("configmap/odd created", k("create", "--validate=ignore", "-f", "-", stdin=document))


@check
def a_dry_run_on_the_server_changes_nothing(k):
    expect_in("created (server dry run)", k("create", "configmap", "dry", "--dry-run=server"))
    expect_equal(k("get", "cm", "dry", "--ignore-not-found"), "")
    expect_in("uid:", k("create", "configmap", "dry", "--dry-run=server", "-o", "yaml"))


@check
def generators_create_their_objects(k):
    unique = k.namespace
    made = [
        ("job", ["job", "once", "--image=busybox", "--", "true"], "job.batch/once created"),
        ("cronjob", ["cronjob", "often", "--image=busybox", "--schedule=*/5 * * * *", "--", "true"], "cronjob.batch/often created"),
        ("job from a cronjob", ["job", "now", "--from=cronjob/often"], "job.batch/now created"),
        ("secret", ["secret", "generic", "password", "--from-literal=a=b"], "secret/password created"),
        ("tls secret", ["secret", "docker-registry", "registry", "--docker-username=u", "--docker-password=p"], "secret/registry created"),
        ("service", ["service", "clusterip", "inside", "--tcp=80:8080"], "service/inside created"),
        ("node port", ["service", "nodeport", "outside", "--tcp=80:8080"], "service/outside created"),
        ("external name", ["service", "externalname", "elsewhere", "--external-name=example.org"], "service/elsewhere created"),
        ("quota", ["quota", "limits", "--hard=pods=10"], "resourcequota/limits created"),
        ("role", ["role", "reader", "--verb=get", "--resource=pods"], "role.rbac.authorization.k8s.io/reader created"),
        ("role binding", ["rolebinding", "readers", "--role=reader", "--user=ann"], "rolebinding.rbac.authorization.k8s.io/readers created"),
        ("cluster role", ["clusterrole", unique, "--verb=get", "--resource=pods"], f"clusterrole.rbac.authorization.k8s.io/{unique} created"),
        ("cluster role binding", ["clusterrolebinding", unique, f"--clusterrole={unique}", "--user=ann"], f"clusterrolebinding.rbac.authorization.k8s.io/{unique} created"),
        ("service account", ["serviceaccount", "robot"], "serviceaccount/robot created"),
        ("deployment", ["deployment", "site", "--image=nginx", "--replicas=3"], "deployment.apps/site created"),
        ("disruption budget", ["poddisruptionbudget", "budget", "--selector=app=site", "--min-available=1"], "poddisruptionbudget.policy/budget created"),
        ("priority class", ["priorityclass", unique, "--value=7"], f"priorityclass.scheduling.k8s.io/{unique} created"),
        ("ingress", ["ingress", "door", "--rule=example.org/*=inside:80"], "ingress.networking.k8s.io/door created"),
        ("namespace", ["namespace", f"{unique}-more"], f"namespace/{unique}-more created"),
    ]
    for what, arguments, said in made:
        out = k("create", *arguments).strip()
        expect(out == said, f"{what}: expected {said!r}, not {out!r}")
    expect_equal(k.path("cronjob", "often", ".spec.schedule"), "*/5 * * * *")
    expect_equal(k.path("secret", "password", ".data.a"), "Yg==")
    expect_equal(k.path("deployment", "site", ".spec.template.spec.containers[0].name"), "nginx")
    expect_in("*/5 * * * *", k("get", "cronjobs"))
    everything = k("get", "all", "-o", "name").split()
    for name in ["job.batch/once", "cronjob.batch/often", "service/inside", "deployment.apps/site"]:
        expect(name in everything, f"{name} is not in {everything}")


@check
def run_expose_and_autoscale_work(k):
    expect_in("pod/shell created", k("run", "shell", "--image=busybox", "--port=80", "--labels=app=shell"))
    expect_in("service/shell exposed", k("expose", "pod", "shell", "--port=80"))
    expect_equal(k.path("service", "shell", ".spec.selector.app"), "shell")
    k.create(DEPLOYMENT)
    expect_in("service/web exposed", k("expose", "deployment", "web", "--port=80"))
    expect_in("autoscaled", k("autoscale", "deployment", "web", "--max=5", "--min=1", "--cpu-percent=80"))
    expect_equal(k.path("hpa", "web", ".spec.maxReplicas"), "5")
    expect_in("Pending", k("get", "pods"))


@check
def a_pod_that_does_not_run_has_no_logs_and_runs_nothing(k):
    k("run", "idle", "--image=busybox")
    expect_equal(k("logs", "idle"), "")
    expect_in("pod idle does not have a host assigned", k.fails("exec", "idle", "--", "true"))


# Changing


@check
def patches_of_all_three_types_change_a_deployment(k):
    k.create(DEPLOYMENT)
    image = '{"spec":{"template":{"spec":{"containers":[{"name":"helper","image":"busybox:1.37"}]}}}}'
    expect_in("deployment.apps/web patched", k("patch", "deployment", "web", "-p", image))
    expect_equal(k.path("deployment", "web", ".spec.template.spec.containers[*].image"), "nginx:1.27 busybox:1.37")
    k("patch", "deployment", "web", "--type=merge", "-p", '{"metadata":{"labels":{"app":null,"tier":"front"}}}')
    expect_equal(k.json("get", "deployment", "web")["metadata"]["labels"], {"tier": "front"})
    operations = '[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":7}]'
    k("patch", "deployment", "web", "--type=json", "-p", operations)
    expect_equal(k.path("deployment", "web", ".spec.replicas"), "7")
    expect_in("the server rejected our request", k.fails("patch", "deployment", "web", "--type=json", "-p", operations))
    expect_in("patched (no change)", k("patch", "deployment", "web", "-p", image))


@check
def patches_of_a_custom_resource_are_merge_and_json(k):
    widgets_are_served(k)
    k.create(WIDGET)
    k("patch", "widget", "gear", "--type=merge", "-p", '{"spec":{"size":"large"}}')
    k("patch", "widget", "gear", "--type=json", "-p", '[{"op":"add","path":"/spec/parts/-","value":{"name":"axle"}}]')
    expect_equal(k.path("widget", "gear", ".spec.parts[*].name"), "tooth axle")
    expect_in("application/strategic-merge-patch+json", k.fails("patch", "widget", "gear", "--type=strategic", "-p", '{"spec":{"size":"small"}}'))
    k("patch", "widget", "gear", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Turning"}}')
    expect_equal(k.path("widget", "gear", ".status.phase"), "Turning")
    expect_in("Turning", k("get", "widgets", "-o", "wide"))


@check
def labels_and_annotations_are_set_kept_and_removed(k):
    k("create", "configmap", "one")
    expect_in("configmap/one labeled", k("label", "cm", "one", "colour=red"))
    expect_in("already has a value (red)", k.fails("label", "cm", "one", "colour=blue"))
    k("label", "cm", "one", "colour=blue", "--overwrite")
    expect_equal(k.path("cm", "one", ".metadata.labels.colour"), "blue")
    expect_in("unlabeled", k("label", "cm", "one", "colour-"))
    expect_equal(k.path("cm", "one", ".metadata.labels"), "")
    expect_in("configmap/one annotate", k("annotate", "cm", "one", "note=hello world"))
    expect_equal(k.path("cm", "one", ".metadata.annotations.note"), "hello world")
    k("annotate", "cm", "one", "note-")
    expect_equal(k.path("cm", "one", ".metadata.annotations"), "")


@check
def edit_sends_the_edited_text(k):
    k("create", "configmap", "one", "--from-literal=a=before")
    expect_in("configmap/one edited", k("edit", "cm", "one", environment=k.editing_with("s/before/after/")))
    expect_equal(k.path("cm", "one", ".data.a"), "after")
    _, out, error = k.ended("edit", "cm", "one", environment=k.editing_with(""))
    expect_in("Edit cancelled, no changes made", out + error)
    widgets_are_served(k)
    k.create(WIDGET)
    k("edit", "widget", "gear", environment=k.editing_with("s/size: small/size: large/"))
    expect_equal(k.path("widget", "gear", ".spec.size"), "large")


@check
def replace_replaces_an_object(k):
    k("create", "configmap", "one", "--from-literal=a=b")
    document = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {c: d}\n"
    uid = k.path("cm", "one", ".metadata.uid")
    expect_in("configmap/one replaced", k("replace", "-f", "-", stdin=document))
    expect_equal(k.json("get", "cm", "one")["data"], {"c": "d"})
    expect_equal(k.path("cm", "one", ".metadata.uid"), uid)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=k.environment["HOME"]) as file:
        file.write(document)
        file.flush()
        k("replace", "--force", "-f", file.name)
    expect(k.path("cm", "one", ".metadata.uid") != uid, "the uid is the same after replace --force")


@check
def scale_changes_replicas(k):
    k.create(DEPLOYMENT)
    expect_in("deployment.apps/web scaled", k("scale", "deployment", "web", "--replicas=4"))
    expect_equal(k.path("deployment", "web", ".spec.replicas"), "4")
    expect_in("Expected replicas to be 2, was 4", k.fails("scale", "deployment", "web", "--current-replicas=2", "--replicas=5"))
    widgets_are_served(k)
    k.create(WIDGET)
    expect_in("widget.interop.k1s.dev/gear scaled", k("scale", "widget", "gear", "--replicas=3"))
    expect_equal(k.path("widget", "gear", ".spec.replicas"), "3")


@check
def set_changes_a_deployments_template(k):
    k.create(DEPLOYMENT)
    expect_in("deployment.apps/web image updated", k("set", "image", "deployment/web", "server=nginx:1.29"))
    k("set", "env", "deployment/web", "-c", "server", "MODE=fast")
    k("set", "resources", "deployment/web", "-c", "server", "--limits=cpu=200m,memory=64Mi")
    server = k.json("get", "deployment", "web")["spec"]["template"]["spec"]["containers"][0]
    expect_equal(server["image"], "nginx:1.29")
    expect_equal(server["env"], [{"name": "MODE", "value": "fast"}])
    expect_equal(server["resources"]["limits"], {"cpu": "200m", "memory": "64Mi"})


# Describing and explaining


def described(k, *what):
    """Returns the description, with columns collapsed to one blank: their width differs between versions."""
    return "\n".join(" ".join(line.split()) for line in k("describe", *what).splitlines())


@check
def describe_shows_a_configmap(k):
    k("create", "configmap", "one", "--from-literal=a=b")
    expect_in("Data\n====\na:\n----\nb\n", described(k, "cm", "one"))


@check
def describe_shows_a_deployment(k):
    k.create(DEPLOYMENT)
    text = described(k, "deployment", "web")
    for part in ["Selector: app=web", "2 desired", "Image: nginx:1.27", "StrategyType: RollingUpdate"]:
        expect_in(part, text)


@check
def describe_shows_a_service(k):
    k("create", "service", "clusterip", "inside", "--tcp=80:8080")
    text = described(k, "service", "inside")
    for part in ["Selector: app=inside", "TargetPort: 8080/TCP", "Type: ClusterIP"]:
        expect_in(part, text)


@check
def describe_shows_a_node(k):
    k.create(NODE.format(name=k.namespace))
    text = described(k, "node", k.namespace)
    expect_in("Unschedulable: false", text)
    expect_in("Non-terminated Pods:", text)


@check
def describe_shows_a_definition_and_a_custom_resource(k):
    widgets_are_served(k)
    k.create(WIDGET)
    text = described(k, "crd", "widgets.interop.k1s.dev")
    for part in ["Singular: widget", "Type: Established", "Stored Versions:"]:
        expect_in(part, text)
    text = described(k, "widget", "gear")
    for part in ["Kind: Widget", "Size: small", "Weight: 3", "Events: <none>"]:
        expect_in(part, text)


@check
def explain_knows_built_in_kinds(k):
    text = k("explain", "deployment.spec.strategy")
    expect_in("rollingUpdate", text)
    expect_in("containers", k("explain", "pod.spec", "--recursive"))
    expect_in("KIND:       ConfigMap", k("explain", "configmap"))
    expect_in('field "nonsense" does not exist', k.fails("explain", "pod.nonsense"))


@check
def explain_knows_custom_kinds(k):
    widgets_are_served(k)
    text = k("explain", "widget")
    for part in ["GROUP:      interop.k1s.dev", "KIND:       Widget", "A widget is what this group is about."]:
        expect_in(part, text)
    expect_in("How big the widget is.", k("explain", "widget.spec.size"))
    expect_in("weight", k("explain", "widget", "--recursive"))


# Deleting


def a_deployment_with_a_replica_set(k):
    k.create(DEPLOYMENT)
    k.create(REPLICA_SET.format(uid=k.path("deployment", "web", ".metadata.uid")))


@check
def delete_in_the_background_deletes_owned_objects(k):
    a_deployment_with_a_replica_set(k)
    expect_in('deployment.apps "web" deleted', k("delete", "deployment", "web", "--timeout=30s"))
    k.is_gone("replicaset", "web-1")


@check
def delete_in_the_foreground_deletes_owned_objects_first(k):
    a_deployment_with_a_replica_set(k)
    k("patch", "replicaset", "web-1", "--type=merge", "-p", '{"metadata":{"finalizers":["interop.k1s.dev/hold"]}}')
    k("delete", "deployment", "web", "--cascade=foreground", "--wait=false")
    eventually(lambda: k.path("replicaset", "web-1", ".metadata.deletionTimestamp"), "the ReplicaSet is being deleted")
    expect_equal(k.path("deployment", "web", ".metadata.finalizers[0]"), "foregroundDeletion")
    k("patch", "replicaset", "web-1", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    k.is_gone("replicaset", "web-1")
    k.is_gone("deployment", "web")


@check
def delete_as_orphan_keeps_owned_objects(k):
    a_deployment_with_a_replica_set(k)
    k("delete", "deployment", "web", "--cascade=orphan", "--timeout=30s")
    expect_equal(k.path("replicaset", "web-1", ".metadata.ownerReferences"), "")


@check
def delete_supports_selectors_and_all(k):
    for name in ["a", "b", "c"]:
        k("create", "secret", "generic", name)
    k("label", "secret", "a", "b", "drop=yes")
    k("delete", "secrets", "-l", "drop=yes")
    expect_equal(k("get", "secrets", "-o", "name").split(), ["secret/c"])
    expect_in('secret "c" deleted', k("delete", "secrets", "--all"))
    expect_in('secrets "c" not found', k.fails("delete", "secret", "c"))
    k("delete", "secret", "c", "--ignore-not-found")


@check
def deleted_pods_are_gone_at_once_when_forced(k):
    k("run", "idle", "--image=busybox")
    expect_in('pod "idle" force deleted', k("delete", "pod", "idle", "--force", "--grace-period=0"))
    k.is_gone("pod", "idle")


@check
def a_finalizer_keeps_an_object_until_it_is_removed(k):
    k.create('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: ["interop.k1s.dev/hold"]}\n')
    k("delete", "cm", "held", "--wait=false")
    expect(k.path("cm", "held", ".metadata.deletionTimestamp"), "no deletionTimestamp")
    expect_in("timed out waiting for the condition", k.fails("wait", "--for=delete", "cm/held", "--timeout=1s"))
    # A concurrent wait may find it gone already, and then prints nothing: only its exit can be checked.
    k("patch", "cm", "held", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
    k("wait", "--for=delete", "cm/held", "--timeout=30s")
    expect_in("not found", k.fails("get", "cm", "held"))


@check
def a_deleted_namespace_deletes_its_objects(k):
    other = f"{k.namespace}-other"
    k("create", "namespace", other)
    k("create", "configmap", "inside", "-n", other)
    expect_in(f'namespace "{other}" deleted', k("delete", "namespace", other, "--timeout=40s"))
    expect_in(f'namespaces "{other}" not found', k.fails("get", "namespace", other))
    expect_equal(k("get", "cm", "-A", "--field-selector", f"metadata.namespace={other}", "-o", "name"), "")


@check
def a_deleted_definition_removes_its_kind(k):
    group = "gone.k1s.dev"
    k.apply(CRD.replace("interop.k1s.dev", group))
    k("wait", "--for=condition=Established", f"crd/widgets.{group}", "--timeout=30s")
    k.apply(WIDGET.replace("interop.k1s.dev", group))
    k("delete", "crd", f"widgets.{group}", "--timeout=30s")
    eventually(lambda: k.ended("get", f"widgets.{group}")[0] != 0, "the kind is gone")
    expect(group not in k("api-versions"), "the group is still served")


# Waiting and rolling out

COMPLETE = {
    "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
    "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "",
                    "lastTransitionTime": "2030-01-01T00:00:00Z", "lastUpdateTime": "2030-01-01T00:00:00Z"}],
}


# The first revision of a Deployment, as its controller would store it.
REPLICA_SET = """
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  labels: {{app: web}}
  annotations: {{deployment.kubernetes.io/revision: "1", kubernetes.io/change-cause: first}}
  ownerReferences:
  - {{apiVersion: apps/v1, kind: Deployment, name: web, uid: {uid}, controller: true, blockOwnerDeletion: true}}
spec:
  selector:
    matchLabels: {{app: web}}
  template:
    metadata:
      labels: {{app: web}}
    spec:
      containers:
      - {{name: server, image: "first:1"}}
"""


def has_rolled_out(k, generation=1):
    """Writes the status that a Deployment's controller would write."""
    status = json.dumps({"status": {**COMPLETE, "observedGeneration": generation}})
    k("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status)


@check
def wait_sees_a_condition_and_a_field(k):
    k.create(DEPLOYMENT)
    expect_in("timed out", k.fails("wait", "--for=condition=Available", "deployment/web", "--timeout=1s"))
    with Watching(k, "wait", "--for=condition=Available", "deployment/web", "--timeout=30s") as watching:
        has_rolled_out(k)
        watching.prints("deployment.apps/web condition met")
    expect_in("condition met", k("wait", "--for=jsonpath={.status.readyReplicas}=2", "deployment/web", "--timeout=30s"))


@check
def wait_sees_a_creation(k):
    if k.minor < 31:
        return
    with Watching(k, "wait", "--for=create", "cm/late", "--timeout=30s") as watching:
        k("create", "configmap", "late")
        watching.prints("configmap/late condition met")


@check
def rollout_status_history_and_restart_work(k):
    k.create(DEPLOYMENT)
    with Watching(k, "rollout", "status", "deployment/web", "--timeout=30s") as watching:
        watching.prints("Waiting for deployment")
        has_rolled_out(k)
        watching.prints('deployment "web" successfully rolled out')
    expect_in("No rollout history found", k("rollout", "history", "deployment/web"))
    k.create(REPLICA_SET.format(uid=k.path("deployment", "web", ".metadata.uid")))
    expect_equal(k("rollout", "history", "deployment/web").split()[1:5], ["REVISION", "CHANGE-CAUSE", "1", "first"])
    expect_in("Image: first:1", " ".join(k("rollout", "history", "deployment/web", "--revision=1").split()))
    expect_in("deployment.apps/web restarted", k("rollout", "restart", "deployment/web"))
    expect(k.path("deployment", "web", ".spec.template.metadata.annotations.kubectl\\.kubernetes\\.io/restartedAt"), "no annotation")
    expect_equal(k.path("deployment", "web", ".metadata.generation"), "2")
    expect_in("paused", k("rollout", "pause", "deployment/web"))
    expect_in("resumed", k("rollout", "resume", "deployment/web"))


# Nodes, events and tokens


@check
def nodes_are_tainted_cordoned_and_drained(k):
    node = k.namespace
    k.create(NODE.format(name=node))
    expect_in(f"node/{node} tainted", k("taint", "node", node, "colour=red:NoSchedule"))
    expect_equal(k.path("node", node, ".spec.taints[?(@.key==\"colour\")].effect"), "NoSchedule")
    expect_in("untainted", k("taint", "node", node, "colour-"))
    expect_in(f"node/{node} cordoned", k("cordon", node))
    expect_equal(k.path("node", node, ".spec.unschedulable"), "true")
    expect_in("SchedulingDisabled", k("get", "node", node))
    expect_in(f"node/{node} uncordoned", k("uncordon", node))
    expect_in(f"node/{node} drained", k("drain", node))


@check
def drain_evicts_the_pods_of_a_node(k):
    node = k.namespace
    k.create(NODE.format(name=node))
    k("run", "guest", "--image=busybox", "--overrides", json.dumps({"spec": {"nodeName": node}}))
    out = k("drain", node, "--force", "--grace-period=0", "--timeout=30s")
    expect_in(f"node/{node} drained", out)
    k.is_gone("pod", "guest")


@check
def events_of_an_object_are_listed(k):
    k("create", "configmap", "one")
    k.create(f"""
apiVersion: v1
kind: Event
metadata: {{name: one.1, namespace: {k.namespace}}}
involvedObject: {{apiVersion: v1, kind: ConfigMap, name: one, namespace: {k.namespace}}}
reason: Noticed
message: it was seen
type: Normal
count: 1
firstTimestamp: "2030-01-01T00:00:00Z"
lastTimestamp: "2030-01-01T00:00:00Z"
source: {{component: interop}}
""")
    for said in [k("events"), k("get", "events"), k("events", "--for", "configmap/one")]:
        expect_in("Noticed", said)
        expect_in("it was seen", said)
    expect_equal(k("get", "events", "--field-selector", "reason=Other", "-o", "name"), "")


@check
def a_token_for_a_service_account_is_created(k):
    k("create", "serviceaccount", "robot")
    token = k("create", "token", "robot").strip()
    expect_equal(token.count("."), 2)
    if k.minor >= 28:
        said = k("auth", "whoami", "--kubeconfig", with_token(k, token))
        expect_in(f"system:serviceaccount:{k.namespace}:robot", said)


def with_token(k, token):
    """Returns a copy of the kubeconfig, for another user."""
    path = os.path.join(k.environment["HOME"], f"{k.namespace}.kubeconfig")
    config = json.loads(k("config", "view", "--raw", "-o", "json"))
    config["users"][0]["user"] = {"token": token}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    return path


def main():
    binary, name = sys.argv[1:3]
    with tempfile.TemporaryDirectory(prefix="k1s-interop-") as home:
        first = Kubectl(binary, "default", home)
        minor = int(first.json("version", "--client")["clientVersion"]["gitVersion"].split(".")[1])

        run = f"{int(time.time()):x}"

        def in_separate_namespace(check_name):
            namespace = f"{name}-{run}-{check_name.replace('_', '-')}"[:50].rstrip("-")
            first("create", "namespace", namespace)
            kubectl = Kubectl(binary, namespace, home)
            kubectl.minor = minor
            return kubectl

        return run_checks(f"kubectl {name}", in_separate_namespace)


sys.exit(main())
