//! kubectl behind a load balancer in front of two servers, of which one is killed.

use std::{net::SocketAddr, path::PathBuf};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

use super::*;

/// Forwards connections to the first of its servers that takes them.
struct Balancer {
    address: SocketAddr,
    servers: Arc<std::sync::Mutex<Vec<SocketAddr>>>,
}

impl Balancer {
    async fn start(servers: &[&Server]) -> Balancer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let servers =
            Arc::new(std::sync::Mutex::new(servers.iter().map(|server| server.address()).collect()));
        let known: Arc<std::sync::Mutex<Vec<SocketAddr>>> = servers.clone();
        let env = Env::system();
        drop(env.clone().spawn("load balancer", async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let known = known.lock().unwrap().clone();
                drop(env.spawn("connection", async move {
                    for address in known {
                        if let Ok(mut to) = TcpStream::connect(address).await {
                            let _ = copy_bidirectional(&mut from, &mut to).await;
                            return;
                        }
                    }
                }));
            }
        }));
        Balancer { address, servers }
    }

    /// New connections go to this server, if it lives.
    fn prefer(&self, server: &Server) {
        let address = server.address();
        self.servers.lock().unwrap().sort_by_key(|known| *known != address);
    }

    fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Server {
    fn url(&self) -> String {
        self.kubeconfig.clusters[0].cluster.clone().unwrap().server.unwrap()
    }

    fn address(&self) -> SocketAddr {
        self.url().strip_prefix("https://").unwrap().trim_end_matches('/').parse().unwrap()
    }
}

/// kubectl as a user.
struct Kubectl {
    kubeconfig: PathBuf,
    server: String,
}

/// A kubectl that runs in the background, and the lines that it prints.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// The next line with this text.
    fn line(&mut self, text: &str) -> String {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("it ends without {text:?}")).unwrap();
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Kubectl {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        // Its cache is in the home folder.
        command.env("HOME", self.kubeconfig.parent().unwrap());
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(["--server", &self.server]).args(arguments);
        command
    }

    /// What it prints if it succeeds; what it complains about if it does not.
    fn try_run(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn run(&self, arguments: &[&str]) -> String {
        self.try_run(arguments).unwrap_or_else(|why| panic!("kubectl {arguments:?}: {why}"))
    }

    /// What it prints to both outputs, as it runs.
    fn start(&self, arguments: &[&str]) -> Running {
        let script = "exec \"$@\" 2>&1";
        let own = self.command(arguments);
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(own.get_program()).args(own.get_args());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }

    fn apply(&self, file: &Path, value: &str) -> Result<String, String> {
        let object = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"value": value}});
        std::fs::write(file, object.to_string()).unwrap();
        self.try_run(&["apply", "-f", file.to_str().unwrap()])
    }
}

/// Whether there is a kubectl; in CI there is.
fn has_kubectl() -> bool {
    let found = Command::new("kubectl").args(["version", "--client"]).stdout(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    assert!(found || std::env::var_os("K1S_REQUIRE_KUBECTL").is_none(), "there is no kubectl on the PATH");
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_goes_on_through_a_load_balancer_when_a_server_is_killed() {
    if !has_kubectl() {
        println!("SKIPPED: there is no kubectl on the PATH");
        return;
    }
    let Some((etcd, folder, a, b)) = pair(&[]).await else { return };
    let balancer = Balancer::start(&[&a, &b]).await;
    let kubectl = Kubectl { kubeconfig: folder.path().join("a"), server: balancer.url() };
    // A certificate that neither server has issued is valid at both.
    let alice = folder.path().join("alice");
    let issued = Command::new(env!("CARGO_BIN_EXE_k1s"))
        .args(["pki", "issue", "--user", "alice", "--group", "devs", "--etcd", &etcd.endpoint()])
        .args(["--server", &balancer.url(), "--kubeconfig"])
        .arg(&alice)
        .output()
        .unwrap();
    assert!(issued.status.success(), "{issued:?}");
    let alice = Kubectl { kubeconfig: alice, server: balancer.url() };
    let who = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups[0]}"];
    let file = folder.path().join("x.json");
    for server in [&a, &b] {
        balancer.prefer(server);
        assert_eq!(alice.run(&who), "alice devs");
        let refused = alice.try_run(&["get", "configmaps"]).unwrap_err();
        assert!(refused.contains("Forbidden") && refused.contains("\"alice\""), "{refused}");
        kubectl.apply(&file, "first").unwrap();
    }

    // Watches through both: one of kubectl wait, which goes on by itself, and one of kubectl get.
    balancer.prefer(&a);
    let jsonpath = "--for=jsonpath={.data.value}=last";
    let mut waiting = kubectl.start(&["wait", jsonpath, "configmap/x", "--timeout=120s", "-v=6"]);
    waiting.line("watch=true");
    balancer.prefer(&b);
    let mut watching =
        kubectl.start(&["get", "configmap", "x", "--watch", "-o", r#"jsonpath={.data.value}{"\n"}"#]);
    watching.line("first");
    balancer.prefer(&a);
    assert!(kubectl.apply(&file, "second").unwrap().contains("configured"));
    watching.line("second");
    a.signal(Signal::KILL);
    drop(a);
    for value in ["third", "fourth"] {
        let applied = kubectl.apply(&file, value);
        assert_eq!(applied.as_deref(), Ok("configmap/x configured\n"), "{value}");
        watching.line(value);
    }
    assert_eq!(kubectl.run(&["get", "configmap", "x", "-o", "jsonpath={.data.value}"]), "fourth");
    assert_eq!(alice.run(&who), "alice devs");
    kubectl.apply(&file, "last").unwrap();
    waiting.line("condition met");
    watching.line("last");
}
