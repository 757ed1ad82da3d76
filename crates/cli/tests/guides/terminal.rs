//! The demo and the commands as a person sees them: in a terminal, which tmux provides.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::player::has;

/// How often the screen is looked at, twenty times a second, until it shows something.
const PATIENCE: usize = 1200;

/// A terminal of 100 columns and 40 lines, with a shell.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn open(folder: &Path) -> Terminal {
        let name = folder.file_name().unwrap().to_string_lossy().trim_start_matches('.').to_owned();
        let terminal = Terminal { socket: format!("k1s-test-{name}") };
        let program = Path::new(env!("CARGO_BIN_EXE_k1s")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let home = folder.display();
        let mut tmux = terminal.tmux();
        // Nothing of the user's own settings.
        tmux.args(["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40"])
            .args(["env", "-u", "KUBECONFIG", "-u", "NO_COLOR"])
            .args([
                &format!("PATH={path}"),
                &format!("HOME={home}"),
                "PS1=$ ",
                "bash",
                "--norc",
                "--noprofile",
            ])
            .current_dir(folder);
        assert!(tmux.status().unwrap().success());
        terminal.shows("$");
        terminal
    }

    fn tmux(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.socket]).stdin(Stdio::null());
        tmux
    }

    /// Types keys as tmux names them: `Enter`, `C-c`, `Tab`, or any text.
    fn press(&self, keys: &[&str]) {
        assert!(self.tmux().arg("send-keys").args(keys).status().unwrap().success());
    }

    fn type_line(&self, text: &str) {
        assert!(self.tmux().args(["send-keys", "-l", text]).status().unwrap().success());
        self.press(&["Enter"]);
    }

    /// What is on the screen; with `colours`, with their escape sequences.
    fn screen(&self, colours: bool) -> String {
        let mut tmux = self.tmux();
        tmux.args(["capture-pane", "-p", "-J"]);
        if colours {
            tmux.arg("-e");
        }
        String::from_utf8(tmux.output().unwrap().stdout).unwrap()
    }

    /// Waits until the screen shows a text, and returns the screen.
    fn shows(&self, text: &str) -> String {
        for _ in 0..PATIENCE {
            let screen = self.screen(false);
            if screen.contains(text) {
                return screen;
            }
            pause();
        }
        panic!("{text:?} is not on the screen:\n{}", self.screen(false));
    }

    fn clear(&self) {
        self.press(&["C-l"]);
        for _ in 0..PATIENCE {
            if self.screen(false).trim().len() <= 1 {
                return;
            }
            pause();
        }
        panic!("the screen does not become empty:\n{}", self.screen(false));
    }

    /// Runs a command, and returns the screen when it has ended.
    fn run(&self, command: &str) -> String {
        self.clear();
        self.type_line(&format!("{command}; echo code=$?"));
        self.shows("\ncode=")
    }
}

/// A terminal tells nobody when its screen changes.
fn pause() {
    assert!(Command::new("sleep").arg("0.05").status().unwrap().success());
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").stderr(Stdio::null()).status();
    }
}

#[test]
fn a_session_of_the_demo_and_the_commands() {
    if !has("tmux") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let demo = Terminal::open(folder.path());
    demo.type_line("k1s demo --port 0 --http-port 0 --step-ms 20");
    let screen = demo.shows("Running    ■■■ 3/3");
    for text in ["control plane  https://127.0.0.1:", "Three things to try", "Ctrl-C stops it."] {
        assert!(screen.contains(text), "{text}\n{screen}");
    }

    let side = folder.path().join("side");
    fs::create_dir(&side).unwrap();
    let user = Terminal::open(&side);
    user.type_line("export KUBECONFIG=../k1s.kubeconfig");
    let screen = user.run("k1s get app");
    assert!(
        screen.contains("NAME   DESIRED   READY   PHASE     AGE\nweb    3         3       Running   "),
        "{screen}"
    );
    let screen = user.run("k1s scale app web --replicas=5");
    assert!(screen.contains("application.cloudnative.elide.dev/web scaled\ncode=0"), "{screen}");
    demo.shows("Running    ■■■■■ 5/5");
    let screen = user.run("k1s tree app web");
    for text in ["application.cloudnative.elide.dev/web", "├─", "deployment.apps/web", "configmap/web-config"]
    {
        assert!(screen.contains(text), "{text}\n{screen}");
    }
    let screen = user.run("k1s describe app web | grep -A3 Conditions:");
    assert!(screen.contains("Conditions:"), "{screen}");

    // A watch goes on until it is interrupted, and says nothing then.
    user.clear();
    user.type_line("k1s get app -w");
    user.shows("web    5 ");
    demo.type_line("");
    user.press(&["C-c"]);
    let screen = user.shows("^C");
    assert!(!screen.to_lowercase().contains("error"), "{screen}");

    let screen = user.run("k1s delete app web");
    assert!(screen.contains("\"web\" deleted from default namespace\ncode=0"), "{screen}");
    demo.shows("application default/web          gone");
    demo.press(&["C-c"]);
    let screen = demo.shows("\nstopped");
    assert!(screen.contains("reconciles in flight end, then the control plane"), "{screen}");
    let screen = user.run("k1s get app");
    assert!(screen.contains("The connection to the server") && screen.contains("code=1"), "{screen}");
}

#[test]
fn a_session_in_a_folder() {
    if !has("tmux") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let user = Terminal::open(folder.path());
    let screen = user.run("k1s get cm");
    assert!(screen.contains("`mkdir .k1s` for one that is found from here"), "{screen}");
    user.run("mkdir .k1s");
    assert!(user.run("k1s create cm hello --from-literal=a=b").contains("configmap/hello created\ncode=0"));

    // Headers are bold and errors coloured, on a terminal only.
    user.run("k1s get cm");
    assert!(user.screen(true).contains("\u{1b}[1mNAME"), "{:?}", user.screen(true));
    user.run("NO_COLOR=1 k1s get cm");
    assert!(!user.screen(true).contains("\u{1b}[1m"), "{:?}", user.screen(true));
    user.run("k1s get cm | cat");
    assert!(!user.screen(true).contains("\u{1b}[1m"), "{:?}", user.screen(true));
    let screen = user.run("k1s get nope");
    assert!(screen.contains("error: the server doesn't have a resource type \"nope\"\ncode=1"), "{screen}");
    assert!(user.screen(true).contains("\u{1b}[31merror:"), "{:?}", user.screen(true));

    // An editor that a person would use, as far as it can be scripted.
    let editor = folder.path().join("editor");
    fs::write(
        &editor,
        "#!/bin/sh\nprintf 'in the editor: '; read answer; sed -i \"s/a: b/a: $answer/\" \"$1\"\n",
    )
    .unwrap();
    fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    user.clear();
    user.type_line("KUBE_EDITOR=./editor k1s edit cm hello; echo code=$?");
    user.shows("in the editor: ");
    user.type_line("typed");
    assert!(user.shows("\ncode=0").contains("configmap/hello edited"));
    assert!(user.run("k1s get cm hello -o jsonpath='{.data.a}{\"\\n\"}'").contains("\ntyped\n"));

    // Completion.
    user.run("source <(k1s completion bash)");
    user.clear();
    user.press(&["k1s desc", "Tab"]);
    user.shows("$ k1s describe ");
    user.press(&["C-u"]);

    // A long command says how far it is.
    let many: String = (0..3000)
        .map(|n| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: many-{n}}}\n"))
        .collect();
    fs::write(folder.path().join("many.yaml"), many).unwrap();
    user.clear();
    user.type_line("k1s apply -f many.yaml >/dev/null; echo code=$?");
    let screen = user.shows("code=0");
    assert!(screen.contains(" of 3000 applied"), "{screen}");
}
