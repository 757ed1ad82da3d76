//! `cargo xtask interop`: kubectl, client-go, controller-runtime, helm, the Python client and kopf against `k1s serve`,
//! over HTTPS; an operator over its projects; and kubectl with tokens of an OpenID provider.
//!
//! The checks are in `interop/`; the clients are built once, into `target/interop/`.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    thread,
};

use crate::{print, program, tidy};

/// The kubectl versions under test, as they report themselves.
const KUBECTLS: &[(&str, &str)] = &[("newest", "v1.37.2"), ("oldest", "v1.27.16")];

/// Builds missing clients, and runs every suite on a server in memory and most of them on one with a disk
/// store.
pub(crate) fn run() -> Result<(), String> {
    let tools = Tools::build()?;
    let mut failed = Vec::new();
    tools.in_memory(&mut failed)?;
    tools.on_disk(&mut failed)?;
    tools.with_projects(&mut failed)?;
    tools.aggregated(&mut failed)?;
    tools.with_oidc(&mut failed)?;
    if failed.is_empty() {
        print("all clients passed");
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

/// The folders and programs of a run.
struct Tools {
    sources: PathBuf,
    built: PathBuf,
    k1s: PathBuf,
}

impl Tools {
    fn build() -> Result<Self, String> {
        for tool in [["go", "version"], ["python3", "--version"], ["npm", "--version"]] {
            let [program, argument] = tool;
            finish(Command::new(program).arg(argument).stdout(Stdio::null()))
                .map_err(|error| format!("{program} is needed: {error}"))?;
        }
        let root = tidy::root().canonicalize().map_err(|error| format!("the workspace's folder: {error}"))?;
        let built = program::target().join("interop");
        fs::create_dir_all(&built).map_err(|error| format!("{}: {error}", built.display()))?;
        let built = built.canonicalize().map_err(|error| format!("{}: {error}", built.display()))?;
        let tools = Self { sources: root.join("interop"), built, k1s: program::build()? };
        print("== building the clients");
        // Installing packages waits for the network while Go compiles.
        thread::scope(|scope| {
            let packages = scope.spawn(|| tools.build_python().and_then(|()| tools.build_oidc()));
            let go = tools.build_go();
            let packages = packages.join().unwrap_or_else(|_| Err("installing packages panicked".to_owned()));
            go.and(packages)
        })?;
        Ok(tools)
    }

    fn build_go(&self) -> Result<(), String> {
        for (name, version) in KUBECTLS {
            let flags = format!(
                "-s -w -X k8s.io/component-base/version.gitVersion={version} \
                 -X k8s.io/client-go/pkg/version.gitVersion={version}"
            );
            let mut go = Command::new("go");
            go.args(["build", "-trimpath", "-ldflags", &flags, "-o"]).arg(self.kubectl(name)).arg(".");
            finish(go.current_dir(self.sources.join("kubectl").join(name)))?;
        }
        let mut go = Command::new("go");
        go.args(["test", "-c", "-trimpath", "-vet=off", "-ldflags", "-s -w", "-o"])
            .arg(self.client_go())
            .arg(".");
        finish(go.current_dir(self.sources.join("go")))?;
        let mut go = Command::new("go");
        go.args(["test", "-c", "-trimpath", "-vet=off", "-ldflags", "-s -w", "-o"])
            .arg(self.operator_go_tests())
            .arg(".");
        finish(go.current_dir(self.sources.join("operator-go")))?;
        let programs = [
            ("operator-go", self.operator_go()),
            ("projects", self.projects()),
            ("helm", self.helm()),
            ("aggregated", self.aggregated_go()),
        ];
        for (folder, program) in programs {
            let mut go = Command::new("go");
            go.args(["build", "-trimpath", "-ldflags", "-s -w", "-o"]).arg(program).arg(".");
            finish(go.current_dir(self.sources.join(folder)))?;
        }
        Ok(())
    }

    /// The OpenID provider, installed again when its lock file has changed.
    fn build_oidc(&self) -> Result<(), String> {
        let (folder, source) = (self.built.join("oidc"), self.sources.join("oidc"));
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let wanted = fs::read_to_string(source.join("package-lock.json")).map_err(failed)?;
        let installed = folder.join("installed.json");
        if fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        fs::create_dir_all(&folder).map_err(failed)?;
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            fs::copy(source.join(file), folder.join(file)).map_err(failed)?;
        }
        let mut npm = Command::new("npm");
        finish(
            npm.args(["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&folder),
        )?;
        fs::write(&installed, wanted).map_err(failed)
    }

    /// A virtual environment, recreated when the requirements have changed.
    fn build_python(&self) -> Result<(), String> {
        let (folder, list) = (self.built.join("python"), self.sources.join("python/requirements.txt"));
        let wanted = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
        let installed = folder.join("installed.txt");
        if fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        finish(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let mut pip = Command::new(folder.join("bin/pip"));
        finish(pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&list))?;
        fs::write(&installed, wanted).map_err(|error| format!("{}: {error}", installed.display()))
    }

    fn kubectl(&self, name: &str) -> PathBuf {
        self.built.join(format!("kubectl-{name}"))
    }

    fn client_go(&self) -> PathBuf {
        self.built.join("client-go.test")
    }

    fn operator_go(&self) -> PathBuf {
        self.built.join("operator-go")
    }

    fn operator_go_tests(&self) -> PathBuf {
        self.built.join("operator-go.test")
    }

    fn projects(&self) -> PathBuf {
        self.built.join("projects-go")
    }

    fn helm(&self) -> PathBuf {
        self.built.join("helm")
    }

    fn aggregated_go(&self) -> PathBuf {
        self.built.join("aggregated-go")
    }

    fn in_memory(&self, failed: &mut Vec<String>) -> Result<(), String> {
        let server = Server::start(self, "memory", &[])?;
        for (name, _) in KUBECTLS {
            self.kubectl_suite(name, &server, failed)?;
        }
        self.commands_suite(&server, failed)?;
        self.client_go_suite(&server, failed)?;
        self.operator_go_suite(&server, failed)?;
        self.helm_suite(&server, failed)?;
        self.python_suite(&server, failed)?;
        server.stop()
    }

    /// The operator over projects, in memory and on disk.
    fn with_projects(&self, failed: &mut Vec<String>) -> Result<(), String> {
        let folder = self.fresh_folder("projects")?;
        for (name, options) in [("memory", vec![]), ("disk", vec!["--data-dir", folder.as_str()])] {
            let server = Server::start(self, name, &[&["--projects"], &*options].concat())?;
            server.run_suite("projects", &mut Command::new(self.projects()), failed)?;
            server.stop()?;
        }
        Ok(())
    }

    /// An aggregated API server, with the newest kubectl: the oldest one also prints what it could not discover. The server
    /// under test has to know its address before it listens there.
    fn aggregated(&self, failed: &mut Vec<String>) -> Result<(), String> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.map_err(|error| format!("a free port: {error}"))?.to_string();
        let option = format!("--service-address=aggregated/tides={address}");
        let server = Server::start(self, "memory", &[&option])?;
        let mut suite = Command::new(self.aggregated_go());
        suite.arg(self.kubectl("newest")).arg(&address);
        server.run_suite("aggregated API", &mut suite, failed)?;
        server.stop()
    }

    /// An OpenID provider, and kubectl with its tokens; the suite starts its own servers.
    fn with_oidc(&self, failed: &mut Vec<String>) -> Result<(), String> {
        print("== oidc");
        let mut suite = Command::new("python3");
        suite.arg(self.sources.join("oidc/suite.py")).arg(&self.k1s).arg(self.kubectl("newest"));
        let status = suite
            .arg(self.built.join("oidc"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .status()
            .map_err(|error| format!("cannot run the checks of oidc: {error}"))?;
        if !status.success() {
            failed.push("oidc".to_owned());
        }
        Ok(())
    }

    /// An empty data folder, which need not exist.
    fn fresh_folder(&self, name: &str) -> Result<String, String> {
        let folder = self.built.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Ok(folder.display().to_string())
    }

    /// The same without the old kubectl and helm, and with a restart in between: all objects must still be there.
    fn on_disk(&self, failed: &mut Vec<String>) -> Result<(), String> {
        let folder = self.fresh_folder("data")?;
        let server = Server::start(self, "disk", &["--data-dir", &folder])?;
        self.kubectl_suite("newest", &server, failed)?;
        self.client_go_suite(&server, failed)?;
        self.operator_go_suite(&server, failed)?;
        self.python_suite(&server, failed)?;
        let before = self.everything(&server)?;
        server.stop()?;
        let server = Server::start(self, "disk", &["--data-dir", &folder])?;
        let after = self.everything(&server)?;
        server.stop()?;
        if before == after {
            print(&format!("ok    disk: {} objects are the same after a restart", before.lines().count()));
        } else {
            print(&format!(
                "FAIL  disk: objects are the same after a restart\nbefore:\n{before}\nafter:\n{after}"
            ));
            failed.push("a restart of disk".to_owned());
        }
        Ok(())
    }

    fn kubectl_suite(&self, name: &str, server: &Server, failed: &mut Vec<String>) -> Result<(), String> {
        let mut suite = Command::new("python3");
        suite.arg(self.sources.join("kubectl/suite.py")).arg(self.kubectl(name)).arg(name);
        server.run_suite(&format!("kubectl {name}"), &mut suite, failed)
    }

    /// The commands of `k1s` beside those of kubectl.
    fn commands_suite(&self, server: &Server, failed: &mut Vec<String>) -> Result<(), String> {
        let mut suite = Command::new("python3");
        suite.arg(self.sources.join("kubectl/compare.py")).arg(self.kubectl("newest")).arg("newest");
        server.run_suite("k1s beside kubectl", suite.arg(&self.k1s), failed)
    }

    fn python_suite(&self, server: &Server, failed: &mut Vec<String>) -> Result<(), String> {
        let mut suite = Command::new(self.built.join("python/bin/python"));
        suite.arg(self.sources.join("python/suite.py"));
        server.run_suite("Python", &mut suite, failed)
    }

    fn operator_go_suite(&self, server: &Server, failed: &mut Vec<String>) -> Result<(), String> {
        let mut suite = Command::new(self.operator_go());
        suite.env("KUBECTL", self.kubectl("newest"));
        server.run_suite("controller-runtime", suite.arg("check"), failed)?;
        let mut suite = Command::new(self.operator_go_tests());
        // Its definitions are beside its source.
        suite.current_dir(self.sources.join("operator-go"));
        server.run_suite("envtest", suite.args(["-test.v", "-test.timeout=5m"]), failed)
    }

    fn helm_suite(&self, server: &Server, failed: &mut Vec<String>) -> Result<(), String> {
        let mut suite = Command::new("python3");
        suite.arg(self.sources.join("helm/suite.py")).arg(self.helm()).arg(self.kubectl("newest"));
        server.run_suite("helm", &mut suite, failed)
    }

    /// Prints one line per test instead of Go's report, which is only shown on failure.
    fn client_go_suite(&self, server: &Server, failed: &mut Vec<String>) -> Result<(), String> {
        print(&format!("== client-go, {}", server.name));
        let output = Command::new(self.client_go())
            .args(["-test.v", "-test.timeout=5m"])
            .env("KUBECONFIG", &server.kubeconfig)
            .output()
            .map_err(|error| format!("cannot run the tests of client-go: {error}"))?;
        let (out, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        for line in out.lines() {
            if let Some(test) = line.strip_prefix("--- PASS: Test") {
                print(&format!("ok    client-go: {test}"));
            } else if let Some(test) = line.strip_prefix("--- FAIL: Test") {
                print(&format!("FAIL  client-go: {test}"));
            }
        }
        if !output.status.success() {
            let told: Vec<&str> = out.lines().filter(|line| !line.starts_with("=== ")).collect();
            print(&format!("{}\n{log}", told.join("\n")));
            failed.push(format!("client-go on {}", server.name));
        }
        Ok(())
    }

    /// The names and resource versions of stored objects of some kinds.
    fn everything(&self, server: &Server) -> Result<String, String> {
        let columns = "-o=custom-columns=K:.kind,NS:.metadata.namespace,N:.metadata.name,U:.metadata.uid,V:.metadata.resourceVersion";
        let output = Command::new(self.kubectl("newest"))
            .args([
                "get",
                "--all-namespaces",
                "namespaces,configmaps,deployments,services,customresourcedefinitions,nodes",
            ])
            .arg(columns)
            .env("KUBECONFIG", &server.kubeconfig)
            .output()
            .map_err(|error| format!("cannot run kubectl: {error}"))?;
        if !output.status.success() {
            return Err(format!("kubectl get: {}", String::from_utf8_lossy(&output.stderr)));
        }
        // The Service `kubernetes` points to the listen port, which changes with a restart.
        let follows_the_port =
            |line: &&str| line.split_whitespace().take(3).eq(["Service", "default", "kubernetes"]);
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter(|line| !follows_the_port(line)).map(|line| format!("{line}\n")).collect())
    }
}

/// A `k1s serve` over HTTPS, killed on drop.
struct Server {
    name: &'static str,
    process: Child,
    /// Kept open: the server must not get EPIPE when it prints.
    says: BufReader<ChildStdout>,
    kubeconfig: PathBuf,
}

impl Server {
    fn start(tools: &Tools, name: &'static str, options: &[&str]) -> Result<Self, String> {
        let kubeconfig = tools.built.join(format!("{name}.kubeconfig"));
        let mut process = Command::new(&tools.k1s)
            .args(["serve", "--port=0", "--kubeconfig"])
            .arg(&kubeconfig)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", tools.k1s.display()))?;
        let out = process.stdout.take().ok_or("k1s serve has no output")?;
        let mut server = Self { name, process, says: BufReader::new(out), kubeconfig };
        // It prints its address once it is serving.
        let mut line = String::new();
        while !line.contains("serves Kubernetes' API at") {
            line.clear();
            let read = server.says.read_line(&mut line).map_err(|error| format!("k1s serve: {error}"))?;
            if read == 0 {
                return Err("k1s serve exited before it was ready".to_owned());
            }
        }
        Ok(server)
    }

    fn run_suite(&self, suite: &str, command: &mut Command, failed: &mut Vec<String>) -> Result<(), String> {
        print(&format!("== {suite}, {}", self.name));
        let status = command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .status()
            .map_err(|error| format!("cannot run the checks of {suite}: {error}"))?;
        if !status.success() {
            failed.push(format!("{suite} on {}", self.name));
        }
        Ok(())
    }

    /// Sends SIGTERM, as a supervisor would; it must exit with 0.
    fn stop(mut self) -> Result<(), String> {
        finish(Command::new("kill").args(["-TERM", &self.process.id().to_string()]))?;
        let status = self.process.wait().map_err(|error| format!("k1s serve: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("k1s serve exited with {status}")) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already exited, or no longer needed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn finish(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cannot run {}: {error}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed ({status})", shown(command))) }
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).display().to_string();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}
