"""A real OpenID provider, and kubectl with its tokens: `suite.py K1S KUBECTL PROVIDER`, PROVIDER being a folder with
`oidc-provider` installed."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import check, eventually, expect, expect_equal, expect_in, run_checks  # noqa: E402
from login import id_token  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
K1S, KUBECTL, PROVIDER = sys.argv[1:4]


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


class World:
    """A provider, and servers that trust it."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.authority, key = self.path("ca.crt"), self.path("ca.key")
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
            "/CN=provider", "-keyout", key, "-out", self.authority, "-addext", "basicConstraints=critical,CA:TRUE")
        run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-keyout",
            self.path("tls.key"), "-out", self.path("tls.csr"))
        with open(self.path("san"), "w") as file:
            file.write("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
        run("openssl", "x509", "-req", "-in", self.path("tls.csr"), "-CA", self.authority, "-CAkey", key, "-days", "2", "-extfile",
            self.path("san"), "-out", self.path("tls.crt"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.issuer = f"https://localhost:{port}"
        # Modules are looked up beside the script.
        script = os.path.join(PROVIDER, "provider.mjs")
        shutil.copyfile(os.path.join(HERE, "provider.mjs"), script)
        self.start(["node", script, str(port), self.path("tls.crt"), self.path("tls.key")], "ready at")

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, command, ready):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.processes.append(process)
        for line in process.stdout:
            if ready in line:
                return
        raise RuntimeError(f"{command[0]} ended before it was ready")

    def stop(self):
        for process in self.processes:
            process.terminate()
            process.wait()

    def serve(self, name, *options):
        """The kubeconfig of the administrator of a new server."""
        kubeconfig = self.path(f"{name}.kubeconfig")
        self.start([K1S, "serve", "--port=0", "--kubeconfig", kubeconfig, *options], "serves Kubernetes' API at")
        return kubeconfig

    def token(self, user, algorithm="RS256"):
        return id_token(self.issuer, self.authority, user, algorithm)


class Kubectl:
    """kubectl with a kubeconfig that has the server of another, and these credentials."""

    def __init__(self, admin, name, user):
        config = json.loads(run(KUBECTL, "--kubeconfig", admin, "config", "view", "--raw", "-o", "json"))
        config["users"] = [{"name": name, "user": user}]
        config["contexts"][0]["context"]["user"] = name
        self.kubeconfig = f"{admin}.{name}"
        with open(self.kubeconfig, "w") as file:
            json.dump(config, file)

    def __call__(self, *arguments):
        done = subprocess.run([KUBECTL, "--kubeconfig", self.kubeconfig, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def who(self):
        """Who one is; `None` if one is nobody."""
        code, out, _ = self("auth", "whoami", "-o", "json")
        return json.loads(out)["status"]["userInfo"] if code == 0 else None


def with_flags(world):
    return world.serve(
        world.name, f"--oidc-issuer-url={world.issuer}", "--oidc-client-id=kubectl-RS256", f"--oidc-ca-file={world.authority}",
        "--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:", "--oidc-username-prefix=oidc:", "--oidc-required-claim=email=jane@example.org",
    )


@check
def an_id_token_names_a_user(world):
    admin = with_flags(world)
    jane = Kubectl(admin, "jane", {"token": world.token("jane")})
    user = eventually(jane.who, "the issuer is known")
    expect_equal(user["username"], "oidc:jane")
    expect_equal(user["groups"], ["oidc:devs", "oidc:ops", "system:authenticated"])
    code, _, error = jane("get", "pods")
    expect(code != 0, "pods are for nobody yet")
    expect_in('User "oidc:jane" cannot list resource "pods"', error)
    run(KUBECTL, "--kubeconfig", admin, "create", "rolebinding", "devs", "--clusterrole=view", "--group=oidc:devs")
    code, _, error = jane("get", "pods")
    expect_equal((code, "No resources found in default namespace." in error), (0, True), error)
    code, _, error = jane("get", "pods", "--namespace=kube-system")
    expect_in('in the namespace "kube-system"', error)
    # Joe lacks a claim, and a token for another client is none for this server.
    for token in [world.token("joe"), world.token("jane", "ES256")]:
        code, _, error = Kubectl(admin, "other", {"token": token})("get", "pods")
        expect(code != 0, "nobody")
        expect_in("You must be logged in to the server", error)


@check
def kubectl_gets_its_token_from_a_plugin(world):
    admin = with_flags(world)
    environment = [{"name": "OIDC_ISSUER", "value": world.issuer}, {"name": "OIDC_AUTHORITY", "value": world.authority}]
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [os.path.join(HERE, "login.py"), "jane"],
              "env": environment, "interactiveMode": "Never"}
    jane = Kubectl(admin, "plugin", {"exec": plugin})
    expect_equal(eventually(jane.who, "the issuer is known")["username"], "oidc:jane")


@check
def a_file_with_expressions_maps_claims(world):
    config = {
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": world.issuer, "audiences": ["kubectl-RS256", "kubectl-ES256"], "audienceMatchPolicy": "MatchAny",
                       "certificateAuthority": open(world.authority).read()},
            "claimValidationRules": [
                {"expression": "claims.?email_verified.orValue(false) == true", "message": "verify your address"},
            ],
            "claimMappings": {
                "username": {"expression": "claims.email.split('@')[0] + '@corp'"},
                "groups": {"expression": "claims.groups.map(g, 'corp:' + g)"},
                "extra": [{"key": "example.org/client", "valueExpression": "claims.aud"}],
            },
            "userValidationRules": [{"expression": "!user.username.startsWith('system:')"}],
        }],
    }
    file = world.path(f"{world.name}.json")
    with open(file, "w") as out:
        json.dump(config, out)
    admin = world.serve(world.name, f"--authentication-config={file}")
    jane = Kubectl(admin, "jane", {"token": world.token("jane", "ES256")})
    user = eventually(jane.who, "the issuer is known")
    expect_equal((user["username"], user["groups"][:2]), ("jane@corp", ["corp:devs", "corp:ops"]))
    expect_equal(user["extra"]["example.org/client"], ["kubectl-ES256"])
    expect_equal(Kubectl(admin, "joe", {"token": world.token("joe")}).who(), None, "his address is not verified")


def main():
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)

        def named(name):
            world.name = name
            return world

        try:
            return run_checks("oidc", named)
        finally:
            world.stop()


if __name__ == "__main__":
    sys.exit(main())
