"""Checks of apply, in the client and on the server; suite.py runs them."""

import re

from driver import CRD, DEPLOYMENT, WIDGET, widgets_are_served
from harness import check, expect, expect_equal, expect_in

SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: one, b: two}\n"

# Apply in the client


@check
def apply_creates_then_changes_nothing_then_changes(k):
    expect_in("configmap/settings created", k.apply(SETTINGS))
    version = k.path("cm", "settings", ".metadata.resourceVersion")
    expect_in("configmap/settings unchanged", k.apply(SETTINGS))
    expect_equal(k.path("cm", "settings", ".metadata.resourceVersion"), version)
    k("patch", "cm", "settings", "--type=merge", "-p", '{"data":{"c":"by another"}}')
    expect_in("configmap/settings configured", k.apply(SETTINGS.replace("b: two", "d: four")))
    expect_equal(k.json("get", "cm", "settings")["data"], {"a": "one", "c": "by another", "d": "four"})
    expect_in("a: one", k("apply", "view-last-applied", "cm", "settings"))


@check
def apply_merges_containers_by_name(k):
    k.apply(DEPLOYMENT)
    expect_in("deployment.apps/web unchanged", k.apply(DEPLOYMENT))
    expect_in("deployment.apps/web configured", k.apply(DEPLOYMENT.replace("nginx:1.27", "nginx:1.28")))
    expect_equal(k.path("deployment", "web", ".spec.template.spec.containers[*].image"), "nginx:1.28 busybox:1.36")
    without = DEPLOYMENT.replace("      - name: helper\n        image: busybox:1.36\n", "")
    expect_in("deployment.apps/web configured", k.apply(without))
    expect_equal(k.path("deployment", "web", ".spec.template.spec.containers[*].name"), "server")


@check
def apply_of_a_custom_resource_removes_deleted_fields(k):
    widgets_are_served(k)
    expect_in("widget.interop.k1s.dev/gear created", k.apply(WIDGET))
    expect_in("widget.interop.k1s.dev/gear unchanged", k.apply(WIDGET))
    changed = WIDGET.replace("size: small", "size: large").split("  parts:")[0]
    expect_in("widget.interop.k1s.dev/gear configured", k.apply(changed))
    expect_equal(k.json("get", "widget", "gear")["spec"], {"size": "large", "replicas": 1})


@check
def apply_of_an_invalid_custom_resource_reports_the_error(k):
    widgets_are_served(k)
    said = k.fails("apply", "-f", "-", stdin=WIDGET.replace("small", "huge"))
    expect_in('The Widget "gear" is invalid: spec.size: Unsupported value: "huge": supported values: "small", "large"', said)


@check
def diff_shows_what_apply_would_change(k):
    k.apply(DEPLOYMENT)
    expect_equal(k("diff", "-f", "-", stdin=DEPLOYMENT), "")
    code, out, error = k.ended("diff", "-f", "-", stdin=DEPLOYMENT.replace("nginx:1.27", "nginx:1.28"))
    expect(code == 1, f"exit code {code}\n{out}\n{error}")
    expect_in("-      - image: nginx:1.27", out)
    expect_in("+      - image: nginx:1.28", out)
    expect_equal(k.path("deployment", "web", ".spec.template.spec.containers[0].image"), "nginx:1.27")


# Apply on the server


def version(k, kind, name):
    return k.path(kind, name, ".metadata.resourceVersion")


@check
def server_side_apply_creates_then_changes_nothing_then_changes(k):
    expect_in("deployment.apps/web serverside-applied", k.apply_on_the_server(DEPLOYMENT))
    made = version(k, "deployment", "web")
    expect_in("deployment.apps/web serverside-applied", k.apply_on_the_server(DEPLOYMENT))
    expect_equal(version(k, "deployment", "web"), made, "the version after an apply without changes")
    managers = k.managers("deployment", "web")
    expect_equal(list(managers), ["kubectl Apply"], "the managers")
    spec = managers["kubectl Apply"]["f:spec"]
    expect_equal(sorted(spec), ["f:replicas", "f:selector", "f:template"], "the owned fields of the spec, without defaults")
    port = {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}
    expect_equal(spec["f:template"]["f:spec"]["f:containers"], {
        'k:{"name":"server"}': {".": {}, "f:name": {}, "f:image": {}, "f:ports": port},
        'k:{"name":"helper"}': {".": {}, "f:name": {}, "f:image": {}},
    }, "the owned fields of the containers")
    changed = DEPLOYMENT.replace("nginx:1.27", "nginx:1.28").replace("      - name: helper\n        image: busybox:1.36\n", "")
    expect_in("deployment.apps/web serverside-applied", k.apply_on_the_server(changed))
    expect_equal(k.path("deployment", "web", ".spec.template.spec.containers[*].image"), "nginx:1.28", "the images after a change")
    expect_equal(k.path("deployment", "web", ".metadata.annotations"), "", "the annotations")


@check
def conflicts_name_managers_and_fields_until_forced(k):
    k.apply_on_the_server(SETTINGS)
    k("patch", "cm", "settings", "--type=merge", "-p", '{"data":{"a":"patched"}}')
    said = k.fails("apply", "--server-side", "-f", "-", stdin=SETTINGS)
    expect_in('error: Apply failed with 1 conflict: conflict with "kubectl-patch" using v1: .data.a\n', said)
    expect_in("Please review the fields above--they currently have other managers", said)
    changed = SETTINGS.replace("one", "three").replace("two", "four")
    said = k.fails("apply", "--server-side", "--field-manager=third", "-f", "-", stdin=changed)
    conflicts = 'conflicts with "kubectl":\n- .data.b\nconflicts with "kubectl-patch" using v1:\n- .data.a\n'
    expect_in(f"error: Apply failed with 2 conflicts: {conflicts}", said)
    expect_equal(k.json("get", "cm", "settings")["data"], {"a": "patched", "b": "two"}, "the data after conflicts")
    expect_in("configmap/settings serverside-applied", k.apply_on_the_server(SETTINGS, "--force-conflicts"))
    expect_equal(k.json("get", "cm", "settings")["data"], {"a": "one", "b": "two"}, "the data after --force-conflicts")
    owned = {"f:data": {"f:a": {}, "f:b": {}}}
    expect_equal(k.managers("cm", "settings"), {"kubectl Apply": owned}, "the managers after --force-conflicts")


@check
def managers_of_one_object_own_their_fields(k):
    data = lambda *keys: {"f:data": {f"f:{key}": {} for key in keys}}
    k.apply_on_the_server(SETTINGS, "--field-manager=first")
    k.apply_on_the_server(SETTINGS.replace("{a: one, b: two}", "{b: two, c: three}"), "--field-manager=second")
    expect_equal(k.json("get", "cm", "settings")["data"], {"a": "one", "b": "two", "c": "three"}, "the data of both managers")
    expected = {"first Apply": data("a", "b"), "second Apply": data("b", "c")}
    expect_equal(k.managers("cm", "settings"), expected, "the managers")
    k.apply_on_the_server(SETTINGS.replace("{a: one, b: two}", "{d: four}"), "--field-manager=first")
    expected = {"b": "two", "c": "three", "d": "four"}
    expect_equal(k.json("get", "cm", "settings")["data"], expected, "the data without what only the first manager owned")


@check
def server_side_apply_of_a_custom_resource_merges_lists_by_key(k):
    # Another name: kubectl's cached discovery would find two kinds of the same name.
    renamed = lambda text: text.replace("interop.k1s.dev", "apply.k1s.dev").replace("widget", "cog").replace("Widget", "Cog")
    definition = renamed(CRD).replace("shortNames: [wd], ", "").replace(
        "                type: array\n                items: {type: object, properties: {name:",
        "                type: array\n                x-kubernetes-list-type: map\n                x-kubernetes-list-map-keys: [name]\n"
        "                items: {type: object, required: [name], properties: {name:",
    )
    expect_in("x-kubernetes-list-type", definition)
    said = "customresourcedefinition.apiextensions.k8s.io/cogs.apply.k1s.dev serverside-applied"
    expect_in(said, k.apply_on_the_server(definition))
    k("wait", "--for=condition=Established", "crd/cogs.apply.k1s.dev", "--timeout=30s")
    expect_in(said, k.apply_on_the_server(definition))
    cog = renamed(WIDGET)
    expect_in("cog.apply.k1s.dev/gear serverside-applied", k.apply_on_the_server(cog))
    owned = {"f:spec": {"f:size": {}, "f:parts": {'k:{"name":"tooth"}': {".": {}, "f:name": {}, "f:weight": {}}}}}
    expect_equal(k.managers("cog", "gear"), {"kubectl Apply": owned}, "the managers, without the default of replicas")
    other = cog.replace("size: small", "replicas: 1").replace("tooth, weight: 3", "axle, weight: 5")
    k.apply_on_the_server(other, "--field-manager=other")
    expect_equal(k.path("cog", "gear", ".spec.parts[*].name"), "tooth axle", "the parts of both managers")
    k.apply_on_the_server(cog.split("  parts:")[0])
    spec = k.json("get", "cog", "gear")["spec"]
    expected = {"size": "small", "replicas": 1, "parts": [{"name": "axle", "weight": 5}]}
    expect_equal(spec, expected, "the spec without the part that kubectl no longer applies")
    said = k.fails("apply", "--server-side", "-f", "-", stdin=cog.replace("small", "huge"))
    expect_in('The Cog "gear" is invalid: spec.size: Unsupported value: "huge": supported values: "small", "large"', said)


@check
def unknown_fields_are_refused_by_server_side_apply(k):
    said = k.fails("apply", "--server-side", "-f", "-", stdin=SETTINGS + "nonsense: 1\n")
    expect_in(f"failed to create typed patch object ({k.namespace}/settings; /v1, Kind=ConfigMap): .nonsense: field not declared in schema", said)
    expect_in("not found", k.fails("get", "cm", "settings"))


@check
def client_side_apply_is_migrated_to_the_server_and_back(k):
    last_applied = {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}}}
    k.apply(SETTINGS)
    expect_equal(list(k.managers("cm", "settings")), ["kubectl-client-side-apply Update"], "the managers before the migration")
    code, out, error = k.ended("apply", "--server-side", "-f", "-", stdin=SETTINGS.replace("a: one, b: two", "a: changed"))
    expect_equal((code, out, error), (0, "configmap/settings serverside-applied\n", ""), "exit code, output and errors of the migration")
    expect_equal(k.json("get", "cm", "settings")["data"], {"a": "changed"}, "the data after the migration")
    expected = {"kubectl Apply": {"f:data": {"f:a": {}}}, "kubectl-last-applied Apply": last_applied}
    expect_equal(k.managers("cm", "settings"), expected, "the managers after the migration")
    # The server keeps the annotation up to date, so that apply in the client continues from here.
    expect_in("a: changed", k("apply", "view-last-applied", "cm", "settings"))
    code, out, error = k.ended("apply", "-f", "-", stdin=SETTINGS.replace("a: one, b: two", "c: three"))
    expect_equal((code, out, error), (0, "configmap/settings configured\n", ""), "exit code, output and errors of apply in the client")
    expect_equal(k.json("get", "cm", "settings")["data"], {"c": "three"}, "the data after apply in the client")
    code, out, error = k.ended("apply", "--server-side", "-f", "-", stdin=SETTINGS.replace("a: one, b: two", "c: four"))
    expect_equal((code, out, error), (0, "configmap/settings serverside-applied\n", ""), "exit code, output and errors of the second migration")
    expect_equal(k.json("get", "cm", "settings")["data"], {"c": "four"}, "the data after the second migration")


@check
def the_last_applied_configuration_is_set_and_followed(k):
    k.apply_on_the_server(SETTINGS)
    expect_equal(k("apply", "view-last-applied", "cm", "settings"), "", "what was applied last in the client")
    expect_in("no last-applied-configuration annotation found", k.fails("apply", "set-last-applied", "-f", "-", stdin=SETTINGS))
    expect_in("configmap/settings configured", k("apply", "set-last-applied", "--create-annotation", "-f", "-", stdin=SETTINGS))
    expect_in("b: two", k("apply", "view-last-applied", "cm", "settings"))
    k.apply_on_the_server(SETTINGS.replace("b: two", "b: three"))
    expect_in("b: three", k("apply", "view-last-applied", "cm", "settings"))


@check
def managed_fields_are_hidden_unless_shown(k):
    k.apply_on_the_server(SETTINGS)
    for what in [["cm", "settings"], ["cm"]]:
        for output in ["yaml", "json"]:
            said = k("get", *what, "-o", output)
            expect("managedFields" not in said, f"get {what} -o {output}: expected no managedFields in:\n{said}")
            expect_in("managedFields", k("get", *what, "-o", output, "--show-managed-fields"))
    said = k("get", "cm", "settings", "-o", "yaml", "--show-managed-fields")
    for part in ["manager: kubectl\n", "operation: Apply\n", "fieldsType: FieldsV1\n", "f:data:\n"]:
        expect_in(part, said)


@check
def diff_on_the_server_shows_changes_and_makes_none(k):
    code, out, error = k.ended("diff", "--server-side", "-f", "-", stdin=DEPLOYMENT)
    expect(code == 1, f"diff of a new object: expected exit code 1, not {code}\n{out}\n{error}")
    expect_in("+      - image: nginx:1.27", out)
    expect_in("not found", k.fails("get", "deployment", "web"))
    k.apply_on_the_server(DEPLOYMENT)
    before = k.json("get", "deployment", "web", "--show-managed-fields")
    expect_equal(k("diff", "--server-side", "-f", "-", stdin=DEPLOYMENT), "", "the diff without changes")
    changed = DEPLOYMENT.replace("nginx:1.27", "nginx:1.28")
    code, out, error = k.ended("diff", "--server-side", "-f", "-", stdin=changed)
    expect(code == 1, f"diff of a change: expected exit code 1, not {code}\n{out}\n{error}")
    expect_in("-      - image: nginx:1.27", out)
    expect_in("+      - image: nginx:1.28", out)
    code, out, error = k.ended("diff", "--server-side", "--field-manager=other", "-f", "-", stdin=changed)
    expect(code > 1, f"diff with a conflict: expected an exit code above 1, not {code}\n{out}\n{error}")
    expect_in('conflict with "kubectl": .spec.template.spec.containers[name="server"].image', error)
    code, out, error = k.ended("diff", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=changed)
    expect(code == 1, f"diff with --force-conflicts: expected exit code 1, not {code}\n{out}\n{error}")
    expect_equal(k.json("get", "deployment", "web", "--show-managed-fields"), before, "the object after diffs")


@check
def a_dry_run_on_the_server_applies_nothing(k):
    expect_in("configmap/settings serverside-applied (server dry run)", k.apply_on_the_server(SETTINGS, "--dry-run=server"))
    expect_in("not found", k.fails("get", "cm", "settings"))
    k.apply_on_the_server(SETTINGS)
    before = k.json("get", "cm", "settings", "--show-managed-fields")
    said = k.apply_on_the_server(SETTINGS.replace("two", "three"), "--dry-run=server", "-o", "yaml")
    expect_in("b: three", said)
    expect_equal(k.json("get", "cm", "settings", "--show-managed-fields"), before, "the object after a dry run")


@check
def a_status_is_applied_on_the_server(k):
    if k.minor < 32:
        return
    widgets_are_served(k)
    k.apply_on_the_server(WIDGET)
    status = "apiVersion: interop.k1s.dev/v1\nkind: Widget\nmetadata: {name: gear}\nspec: {size: large}\nstatus: {phase: Turning}\n"
    said = k.apply_on_the_server(status, "--subresource=status", "--field-manager=turner")
    expect_in("widget.interop.k1s.dev/gear serverside-applied", said)
    expect_equal(k.path("widget", "gear", ".status.phase"), "Turning", "the status")
    expect_equal(k.path("widget", "gear", ".spec.size"), "small", "the size, which is not in the status")
    managers = k.managers("widget", "gear")
    expect_equal(managers.get("turner Apply status"), {"f:status": {"f:phase": {}}}, f"the fields of the status among {managers}")
    said = k.fails("apply", "--server-side", "--subresource=status", "-f", "-", stdin=status.replace("Turning", "Idle"))
    expect_in('Apply failed with 1 conflict: conflict with "turner" with subresource "status": .status.phase', said)


@check
def scale_takes_the_replicas_from_the_applier(k):
    k.apply_on_the_server(DEPLOYMENT)
    k("scale", "deployment", "web", "--replicas=4")
    managers = k.managers("deployment", "web")
    scales = [fields for manager, fields in managers.items() if manager.endswith(" Update scale")]
    expect_equal(scales, [{"f:spec": {"f:replicas": {}}}], f"the fields of scale among {managers}")
    said = k.fails("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT)
    conflict = re.search(r'conflict with "[^"]+" with subresource "scale" using apps/v1: \.spec\.replicas', said)
    expect(conflict, f"expected a conflict with the subresource scale about .spec.replicas in:\n{said}")
    k.apply_on_the_server(DEPLOYMENT.replace("  replicas: 2\n", ""))
    expect_equal(k.path("deployment", "web", ".spec.replicas"), "4", "the replicas after an apply without them")


@check
def commands_are_managers_of_what_they_change(k):
    k("create", "configmap", "one", "--from-literal=a=b")
    k("label", "cm", "one", "x=y")
    k("annotate", "cm", "one", "note=hello")
    k("patch", "cm", "one", "--type=merge", "-p", '{"data":{"c":"d"}}')
    k("edit", "cm", "one", environment=k.editing_with("s/c: d/c: e/"))
    expect_equal(k.managers("cm", "one"), {
        "kubectl-create Update": {"f:data": {".": {}, "f:a": {}}},
        "kubectl-label Update": {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}},
        "kubectl-annotate Update": {"f:metadata": {"f:annotations": {".": {}, "f:note": {}}}},
        "kubectl-edit Update": {"f:data": {"f:c": {}}},
    }, "the managers")
