"""Who may do what, as kubectl shows it. Its checks are run by suite.py."""

import base64
import json
import pathlib
import subprocess

from harness import check, eventually, expect, expect_equal, expect_in

REQUEST = """
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: NAME}
spec:
  request: REQUEST
  signerName: kubernetes.io/kube-apiserver-client
  expirationSeconds: 3600
  usages: [client auth]
"""

ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: writer, namespace: NAMESPACE}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, create, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: writer, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: writer}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: writers}
"""


@check
def a_user_of_one_namespace_may_write_there_alone(k):
    carol = ["--as=carol", "--as-group=writers"]
    expect_in("(Forbidden)", k.fails("get", "configmaps", *carol))
    k("create", "role", "writer", "--verb=get,list,create,delete", "--resource=configmaps")
    k("create", "rolebinding", "writer", "--role=writer", "--group=writers")
    k("create", "configmap", "mine", *carol)
    expect_in("mine", k("get", "configmaps", *carol))
    for arguments in [["get", "secrets"], ["get", "configmaps", "-A"], ["get", "configmaps", "-n", "default"], ["get", "nodes"]]:
        expect_in('User "carol" cannot list resource', k.fails(*arguments, *carol))
    k("delete", "rolebinding", "writer")
    expect_in("(Forbidden)", k.fails("get", "configmaps", *carol))


@check
def can_i_tells_what_a_user_may_do(k):
    carol = ["--as=carol", "--as-group=writers"]
    expect_equal(k.ended("auth", "can-i", "create", "configmaps", *carol)[1].strip(), "no")
    k("create", "rolebinding", "edits", "--clusterrole=edit", "--group=writers")
    expect_equal(k("auth", "can-i", "create", "configmaps", *carol).strip(), "yes")
    expect_equal(k("auth", "can-i", "get", "deployments/scale", *carol).strip(), "yes")
    expect_equal(k.ended("auth", "can-i", "create", "roles", *carol)[1].strip(), "no")
    expect_equal(k.ended("auth", "can-i", "get", "/metrics", *carol)[1].strip(), "no")
    expect_equal(k("auth", "can-i", "get", "/healthz", *carol).strip(), "yes")
    listed = k("auth", "can-i", "--list", *carol)
    expect(any(line.split()[:1] == ["configmaps"] and "create" in line for line in listed.splitlines()), listed)


@check
def reconcile_creates_and_completes_roles(k):
    role = ROLE.replace("NAMESPACE", k.namespace)  # kubectl adds none here
    out = k("auth", "reconcile", "-f", "-", stdin=role)
    expect_in("writer reconciled", out)
    k("patch", "role", "writer", "--type=json", '-p=[{"op": "replace", "path": "/rules/0/verbs", "value": ["get"]}]')
    k("auth", "reconcile", "-f", "-", stdin=role)
    verbs = {verb for rule in k.json("get", "role", "writer")["rules"] for verb in rule["verbs"]}
    expect_equal(verbs, {"get", "list", "create", "delete"})


@check
def nobody_grants_more_than_they_have(k):
    k("create", "rolebinding", "admins", "--clusterrole=admin", "--user=dave")
    why = k.fails("create", "rolebinding", "root", "--clusterrole=cluster-admin", "--user=dave", "--as=dave")
    expect_in("is attempting to grant RBAC permissions not currently held", why)
    k("create", "rolebinding", "viewers", "--clusterrole=view", "--user=erin", "--as=dave")
    expect_equal(k("auth", "can-i", "list", "pods", "--as=erin").strip(), "yes")


@check
def a_service_account_has_the_rights_of_its_bindings(k):
    k("create", "serviceaccount", "robot")
    k("create", "rolebinding", "robot", "--clusterrole=view", f"--serviceaccount={k.namespace}:robot")
    token = k("create", "token", "robot").strip()
    expect_equal(k("auth", "can-i", "list", "pods", f"--as=system:serviceaccount:{k.namespace}:robot").strip(), "yes")
    code, _, error = k.ended("get", "pods", "--token", token)
    expect_equal((code, error.split(" in ")[0]), (0, "No resources found"))
    expect_in(f"system:serviceaccount:{k.namespace}:robot", k.fails("get", "secrets", "--token", token))


@check
def a_user_with_a_certificate_by_request_writes_one_namespace_alone(k):
    name, home = f"carol-{k.namespace}", pathlib.Path(k.environment["HOME"])
    key, request = home / f"{name}.key", home / f"{name}.csr"
    subject = f"/O=writers-{k.namespace}/CN={name}"
    command = ["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-subj", subject, "-out", request]
    subprocess.run(command, check=True, capture_output=True)
    in_base64 = lambda path: base64.b64encode(path.read_bytes()).decode()  # noqa: E731
    k.create(REQUEST.replace("NAME", name).replace("REQUEST", in_base64(request)))
    expect_in("Pending", k("get", "csr", name))
    expect_in(f"certificatesigningrequest.certificates.k8s.io/{name} approved", k("certificate", "approve", name))
    certificate = eventually(lambda: k.path("csr", name, ".status.certificate"), "the request is signed")
    expect_in("Approved,Issued", k("get", "csr", name))

    config = json.loads(k("config", "view", "--raw", "-o", "json"))
    config["users"][0]["user"] = {"client-certificate-data": certificate, "client-key-data": in_base64(key)}
    path = home / f"{name}.kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    carol = ["--kubeconfig", str(path)]
    if k.minor >= 28:
        expect_in(f"writers-{k.namespace}", k("auth", "whoami", *carol))
    expect_in("(Forbidden)", k.fails("get", "configmaps", *carol))
    k("create", "role", "writer", "--verb=get,list,create,delete", "--resource=configmaps")
    k("create", "rolebinding", "writer", "--role=writer", f"--group=writers-{k.namespace}")
    k("create", "configmap", "mine", *carol)
    expect_in("mine", k("get", "configmaps", *carol))
    listed = k("auth", "can-i", "--list", *carol)
    expect(any(line.split()[:1] == ["configmaps"] and "create" in line for line in listed.splitlines()), listed)
    for arguments in [["get", "secrets"], ["create", "configmap", "a", "-n", "default"], ["get", "configmaps", "-A"]]:
        expect_in("forbidden", k.fails(*arguments, *carol).lower())
    expect_in("(Forbidden)", k.fails("certificate", "approve", name, *carol))

    k.create(REQUEST.replace("NAME", f"{name}-denied").replace("REQUEST", in_base64(request)))
    k("certificate", "deny", f"{name}-denied")
    expect_in("Denied", k("get", "csr", f"{name}-denied"))
    k("delete", "csr", name, f"{name}-denied")
