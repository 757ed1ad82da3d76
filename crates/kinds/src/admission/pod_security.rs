//! `PodSecurity`: the Pod Security Standards. Evaluates pods against the levels in the labels of their
//! namespace.

use std::{collections::BTreeSet, fmt};

use k1s_object::{FieldError, field::quote};
use serde_json::Value;

use crate::rules::helpers::json::{find, text_at};

/// The prefix of the labels of Pod Security.
pub const LABEL_PREFIX: &str = "pod-security.kubernetes.io/";

/// A level of the Pod Security Standards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Unrestricted.
    Privileged,
    /// Prevents known privilege escalations.
    Baseline,
    /// Current best practices of hardening.
    Restricted,
}

/// A level in the definition of a Kubernetes version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelVersion {
    /// The level.
    pub level: Level,
    /// The minor version; none for the latest.
    pub minor: Option<u32>,
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.minor {
            None => write!(f, "{level}:latest"),
            Some(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

/// The levels of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Pods that violate it are rejected.
    pub enforce: LevelVersion,
    /// Pods that violate it are noted in the audit log.
    pub audit: LevelVersion,
    /// Pods that violate it get a warning.
    pub warn: LevelVersion,
}

fn parse_level(text: &str) -> Result<Level, &'static str> {
    match text {
        "privileged" => Ok(Level::Privileged),
        "baseline" => Ok(Level::Baseline),
        "restricted" => Ok(Level::Restricted),
        _ => Err("must be one of privileged, baseline, restricted"),
    }
}

fn parse_version(text: &str) -> Result<Option<u32>, &'static str> {
    const WRONG: &str = "must be \"latest\" or \"v1.x\"";
    if text == "latest" {
        return Ok(None);
    }
    let minor = text.strip_prefix("v1.").ok_or(WRONG)?;
    let digits = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (minor.len() > 1 && minor.starts_with('0')) {
        return Err(WRONG);
    }
    minor.parse().map(Some).map_err(|_| WRONG)
}

/// Parses the labels of a namespace. Invalid ones are reported and replaced by a safe level.
pub fn policy(labels: Option<&Value>) -> (Policy, Vec<FieldError>) {
    let open = LevelVersion { level: Level::Privileged, minor: None };
    let mut policy = Policy { enforce: open, audit: open, warn: open };
    let mut errors = Vec::new();
    let label = |name: &str| labels.and_then(|labels| labels.get(format!("{LABEL_PREFIX}{name}"))?.as_str());
    let mut wrong = |name: &str, value: &str, why: &str| {
        errors.push(FieldError::invalid(format!("metadata.labels[{LABEL_PREFIX}{name}]"), value, why));
    };
    let mut enforced = false;
    for mode in ["enforce", "audit", "warn"] {
        let mut chosen = open;
        if let Some(text) = label(mode) {
            match parse_level(text) {
                Ok(level) => {
                    chosen.level = level;
                    enforced |= mode == "enforce";
                }
                Err(why) => {
                    wrong(mode, text, why);
                    chosen.level = if mode == "enforce" { Level::Restricted } else { Level::Privileged };
                }
            }
        }
        let version = format!("{mode}-version");
        if let Some(text) = label(&version) {
            match parse_version(text) {
                Ok(minor) => chosen.minor = minor,
                Err(why) => wrong(&version, text, why),
            }
        }
        match mode {
            "enforce" => policy.enforce = chosen,
            "audit" => policy.audit = chosen,
            "warn" => policy.warn = chosen,
            _ => {}
        }
    }
    if label("warn").is_none() && enforced && policy.enforce.level > policy.warn.level {
        policy.warn.level = policy.enforce.level;
        if label("warn-version").is_none() {
            policy.warn.minor = policy.enforce.minor;
        }
    }
    (policy, errors)
}

/// Whether an update changes fields that are evaluated again: an image, or the set of containers.
pub fn is_significant(new: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<String> {
        let containers =
            pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array).into_iter().flatten();
        containers.map(|one| text_at(one, &["image"]).to_owned()).collect()
    };
    if ["containers", "initContainers"].iter().any(|list| images(new, list) != images(old, list)) {
        return true;
    }
    let named = |pod: &Value| -> std::collections::HashSet<(String, String)> {
        let list = pod.pointer("/spec/ephemeralContainers").and_then(Value::as_array).into_iter().flatten();
        list.map(|one| (text_at(one, &["name"]).to_owned(), text_at(one, &["image"]).to_owned())).collect()
    };
    let before = named(old);
    named(new).iter().any(|one| !before.contains(one))
}

/// A violation of a level: the reason and the details.
pub type Violation = (&'static str, String);

/// Joins the violations into one message.
pub fn together(violations: &[Violation]) -> String {
    let one = |(reason, detail): &Violation| match detail.as_str() {
        "" => (*reason).to_owned(),
        detail => format!("{reason} ({detail})"),
    };
    violations.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The violations of a level by a pod.
pub fn violations(policy: LevelVersion, metadata: Option<&Value>, spec: &Value) -> Vec<Violation> {
    if policy.level == Level::Privileged {
        return Vec::new();
    }
    let pod = Pod { metadata, spec, minor: policy.minor.unwrap_or(u32::MAX) };
    let restricted = policy.level == Level::Restricted;
    let from = |minor: u32| restricted && pod.minor >= minor;
    let mut found = vec![pod.app_armor()];
    if !from(22) {
        found.push(pod.capabilities_baseline());
    }
    found.push(pod.host_namespaces());
    if !restricted {
        found.push(pod.host_paths());
    }
    found.extend([pod.host_ports(), pod.probe_hosts(), pod.privileged()]);
    let relaxed = pod.minor >= 35 && pod.has_own_users();
    if !relaxed && !from(35) {
        found.push(pod.proc_mount());
    }
    found.push(pod.selinux());
    if !from(19) {
        found.push(pod.seccomp(false));
    }
    found.extend([pod.sysctls(), pod.host_process()]);
    if restricted {
        let windows = pod.minor >= 25 && text_at(spec, &["os", "name"]) == "windows";
        if pod.minor >= 8 && !windows {
            found.push(pod.privilege_escalation());
        }
        if from(22) && !windows {
            found.push(pod.capabilities_restricted());
        }
        if from(35) {
            found.push(pod.proc_mount());
        }
        found.push(pod.volume_types());
        if !relaxed {
            found.push(pod.run_as_non_root());
        }
        if pod.minor >= 23 && !relaxed {
            found.push(pod.run_as_user());
        }
        if from(19) && !windows {
            found.push(pod.seccomp(true));
        }
    }
    found.into_iter().flatten().collect()
}

fn plural(word: &'static str, words: &'static str, count: usize) -> &'static str {
    if count == 1 { word } else { words }
}

fn join_quoted<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{}\"", item.as_ref())).collect();
    items.join(", ")
}

/// `container "a"`, `containers "a", "b"`
fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), join_quoted(names))
}

struct Pod<'a> {
    metadata: Option<&'a Value>,
    spec: &'a Value,
    minor: u32,
}

impl<'a> Pod<'a> {
    fn containers(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let spec = self.spec;
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(move |list| spec.get(list).and_then(Value::as_array).into_iter().flatten())
    }

    /// The names of the containers that satisfy a predicate.
    fn which(&self, holds: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        self.containers().filter(|one| holds(one)).map(|one| text_at(one, &["name"])).collect()
    }

    fn annotations(&self) -> impl Iterator<Item = (&'a String, &'a str)> + use<'a> {
        let annotations = self.metadata.and_then(|metadata| metadata.get("annotations")?.as_object());
        annotations.into_iter().flatten().filter_map(|(key, value)| Some((key, value.as_str()?)))
    }

    fn has_own_users(&self) -> bool {
        self.spec.get("hostUsers") == Some(&Value::Bool(false))
    }

    /// The setters (the pod, containers) of a bad value in the security context, and the values.
    fn setters(&self, path: &str, bad: impl Fn(&Value) -> bool) -> (Vec<String>, BTreeSet<String>) {
        let place = format!("/securityContext/{path}");
        let mut values = BTreeSet::new();
        let mut is_bad = |one: &Value| {
            let value = one.pointer(&place).filter(|value| !value.is_null() && bad(value));
            if let Some(text) = value.and_then(Value::as_str) {
                values.insert(text.to_owned());
            }
            value.is_some()
        };
        let mut who = Vec::new();
        if is_bad(self.spec) {
            who.push("pod".to_owned());
        }
        let names: Vec<&str> =
            self.containers().filter(|one| is_bad(one)).map(|one| text_at(one, &["name"])).collect();
        if !names.is_empty() {
            who.push(containers(&names));
        }
        (who, values)
    }

    fn app_armor(&self) -> Option<Violation> {
        let allowed = |kind: &Value| matches!(kind.as_str(), Some("RuntimeDefault" | "Localhost"));
        let (mut who, values) = self.setters("appArmorProfile/type", |kind| !allowed(kind));
        let mut values: Vec<String> = values.into_iter().collect();
        let mut annotations: Vec<String> = self
            .annotations()
            .filter(|(key, value)| {
                key.starts_with("container.apparmor.security.beta.kubernetes.io/")
                    && !(value.is_empty() || *value == "runtime/default" || value.starts_with("localhost/"))
            })
            .map(|(key, value)| format!("{key}={}", quote(value)))
            .collect();
        if !annotations.is_empty() {
            annotations.sort();
            who.push(plural("annotation", "annotations", annotations.len()).into());
            values.extend(annotations);
        }
        let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
        (!who.is_empty()).then(|| {
            (
                reason,
                format!(
                    "{} must not set AppArmor profile type to {}",
                    who.join(" and "),
                    join_quoted(&values)
                ),
            )
        })
    }

    fn added(container: &Value) -> impl Iterator<Item = &str> {
        let list = container.pointer("/securityContext/capabilities/add").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The containers that add disallowed capabilities, and which.
    fn adding(&self, allowed: impl Fn(&str) -> bool) -> Option<String> {
        let bad = self.which(|one| Self::added(one).any(|name| !allowed(name)));
        let names: BTreeSet<&str> =
            self.containers().flat_map(Self::added).filter(|name| !allowed(name)).collect();
        let text = || {
            let who = containers(&bad);
            format!("{who} must not include {} in securityContext.capabilities.add", join_quoted(&names))
        };
        (!bad.is_empty()).then(text)
    }

    fn capabilities_baseline(&self) -> Option<Violation> {
        const ALLOWED: [&str; 13] = [
            "AUDIT_WRITE",
            "CHOWN",
            "DAC_OVERRIDE",
            "FOWNER",
            "FSETID",
            "KILL",
            "MKNOD",
            "NET_BIND_SERVICE",
            "SETFCAP",
            "SETGID",
            "SETPCAP",
            "SETUID",
            "SYS_CHROOT",
        ];
        self.adding(|name| ALLOWED.contains(&name)).map(|detail| ("non-default capabilities", detail))
    }

    fn capabilities_restricted(&self) -> Option<Violation> {
        let keeps = self.which(|one| {
            let list = one.pointer("/securityContext/capabilities/drop").and_then(Value::as_array);
            !list.is_some_and(|list| list.iter().any(|name| name == "ALL"))
        });
        let mut details = Vec::new();
        if !keeps.is_empty() {
            details
                .push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeps)));
        }
        details.extend(self.adding(|name| name == "NET_BIND_SERVICE"));
        (!details.is_empty()).then(|| ("unrestricted capabilities", details.join("; ")))
    }

    fn host_namespaces(&self) -> Option<Violation> {
        let fields = ["hostNetwork", "hostPID", "hostIPC"];
        let set = fields.iter().filter(|field| self.spec.get(**field) == Some(&Value::Bool(true)));
        let set: Vec<String> = set.map(|field| format!("{field}=true")).collect();
        (!set.is_empty()).then(|| ("host namespaces", set.join(", ")))
    }

    fn volumes(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.spec.get("volumes").and_then(Value::as_array).into_iter().flatten()
    }

    fn host_paths(&self) -> Option<Violation> {
        let names: Vec<&str> = self
            .volumes()
            .filter(|one| one.get("hostPath").is_some())
            .map(|one| text_at(one, &["name"]))
            .collect();
        let text = || format!("{} {}", plural("volume", "volumes", names.len()), join_quoted(&names));
        (!names.is_empty()).then(|| ("hostPath volumes", text()))
    }

    fn host_ports(&self) -> Option<Violation> {
        let ports = |one: &Value| -> Vec<String> {
            let list = one.get("ports").and_then(Value::as_array).into_iter().flatten();
            let numbers = list.filter_map(|port| port.get("hostPort")?.as_i64()).filter(|port| *port != 0);
            numbers.map(|port| port.to_string()).collect()
        };
        let bad = self.which(|one| !ports(one).is_empty());
        let used: BTreeSet<String> = self.containers().flat_map(ports).collect();
        (!bad.is_empty()).then(|| {
            let list: Vec<&str> = used.iter().map(String::as_str).collect();
            let (uses, word) =
                (plural("uses", "use", bad.len()), plural("hostPort", "hostPorts", used.len()));
            ("hostPort", format!("{} {uses} {word} {}", containers(&bad), list.join(", ")))
        })
    }

    fn probe_hosts(&self) -> Option<Violation> {
        if self.minor < 34 {
            return None;
        }
        let hosts = |one: &Value| -> Vec<String> {
            let places: [&[&str]; 5] = [
                &["livenessProbe"],
                &["readinessProbe"],
                &["startupProbe"],
                &["lifecycle", "postStart"],
                &["lifecycle", "preStop"],
            ];
            let handlers = places.into_iter().filter_map(|place| find(one, place));
            let pairs = handlers.flat_map(|handler| [(handler, "httpGet"), (handler, "tcpSocket")]);
            let found = pairs.map(|(handler, how)| text_at(handler, &[how, "host"]).to_owned());
            found.filter(|host| !host.is_empty()).collect()
        };
        let mut bad = self.which(|one| !hosts(one).is_empty());
        bad.sort_unstable();
        bad.dedup();
        let used: BTreeSet<String> = self.containers().flat_map(hosts).collect();
        (!bad.is_empty()).then(|| {
            let uses = plural("uses", "use", bad.len());
            let word = plural("probe or lifecycle host", "probe or lifecycle hosts", used.len());
            ("probe or lifecycle host", format!("{} {uses} {word} {}", containers(&bad), join_quoted(&used)))
        })
    }

    fn privileged(&self) -> Option<Violation> {
        let bad = self.which(|one| one.pointer("/securityContext/privileged") == Some(&Value::Bool(true)));
        let text = || format!("{} must not set securityContext.privileged=true", containers(&bad));
        (!bad.is_empty()).then(|| ("privileged", text()))
    }

    fn proc_mount(&self) -> Option<Violation> {
        let kind = |one: &Value| text_at(one, &["securityContext", "procMount"]).to_owned();
        let is_bad = |kind: &String| !kind.is_empty() && kind != "Default";
        let bad = self.which(|one| is_bad(&kind(one)));
        let kinds: BTreeSet<String> = self.containers().map(kind).filter(is_bad).collect();
        let text = || {
            format!("{} must not set securityContext.procMount to {}", containers(&bad), join_quoted(&kinds))
        };
        (!bad.is_empty()).then(|| ("procMount", text()))
    }

    fn selinux(&self) -> Option<Violation> {
        let newer = self.minor >= 31;
        let bad_type = |options: &Value| match text_at(options, &["type"]) {
            "" | "container_t" | "container_init_t" | "container_kvm_t" => None,
            "container_engine_t" if newer => None,
            other => Some(other.to_owned()),
        };
        let sets = |options: &Value, field: &str| !text_at(options, &[field]).is_empty();
        let is_bad =
            |options: &Value| bad_type(options).is_some() || sets(options, "user") || sets(options, "role");
        let (who, _) = self.setters("seLinuxOptions", is_bad);
        if who.is_empty() {
            return None;
        }
        let all: Vec<&Value> = std::iter::once(self.spec)
            .chain(self.containers())
            .filter_map(|one| one.pointer("/securityContext/seLinuxOptions"))
            .collect();
        let types: BTreeSet<String> = all.iter().filter_map(|options| bad_type(options)).collect();
        let mut data = Vec::new();
        if !types.is_empty() {
            data.push(format!("{} {}", plural("type", "types", types.len()), join_quoted(&types)));
        }
        for (field, text) in [("user", "user may not be set"), ("role", "role may not be set")] {
            if all.iter().any(|options| sets(options, field)) {
                data.push(text.into());
            }
        }
        let detail = format!(
            "{} set forbidden securityContext.seLinuxOptions: {}",
            who.join(" and "),
            data.join("; ")
        );
        Some(("seLinuxOptions", detail))
    }

    fn seccomp(&self, must_be_set: bool) -> Option<Violation> {
        let allowed = |kind: &Value| matches!(kind.as_str(), Some("RuntimeDefault" | "Localhost"));
        let (who, values) = self.setters("seccompProfile/type", |kind| !allowed(kind));
        if !who.is_empty() {
            let detail = format!(
                "{} must not set securityContext.seccompProfile.type to {}",
                who.join(" and "),
                join_quoted(&values)
            );
            return Some(("seccompProfile", detail));
        }
        let said =
            |one: &Value| one.pointer("/securityContext/seccompProfile").is_some_and(|one| !one.is_null());
        if !must_be_set || said(self.spec) {
            return None;
        }
        let silent = self.which(|one| !said(one));
        let text = || {
            format!(
                "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
                containers(&silent)
            )
        };
        (!silent.is_empty()).then(|| ("seccompProfile", text()))
    }

    fn sysctls(&self) -> Option<Violation> {
        let since = |name: &str| match name {
            "kernel.shm_rmid_forced"
            | "net.ipv4.ip_local_port_range"
            | "net.ipv4.tcp_syncookies"
            | "net.ipv4.ping_group_range"
            | "net.ipv4.ip_unprivileged_port_start" => Some(0),
            "net.ipv4.ip_local_reserved_ports" => Some(27),
            "net.ipv4.tcp_keepalive_time"
            | "net.ipv4.tcp_fin_timeout"
            | "net.ipv4.tcp_keepalive_intvl"
            | "net.ipv4.tcp_keepalive_probes" => Some(29),
            "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => Some(32),
            "net.ipv4.tcp_slow_start_after_idle" | "net.ipv4.tcp_notsent_lowat" => Some(37),
            _ => None,
        };
        let list =
            self.spec.pointer("/securityContext/sysctls").and_then(Value::as_array).into_iter().flatten();
        let names: Vec<&str> = list
            .map(|sysctl| text_at(sysctl, &["name"]))
            .filter(|name| since(name).is_none_or(|minor| minor > self.minor))
            .collect();
        (!names.is_empty()).then(|| ("forbidden sysctls", names.join(", ")))
    }

    fn host_process(&self) -> Option<Violation> {
        let (who, _) = self.setters("windowsOptions/hostProcess", |value| *value == Value::Bool(true));
        let text =
            || format!("{} must not set securityContext.windowsOptions.hostProcess=true", who.join(" and "));
        (!who.is_empty()).then(|| ("hostProcess", text()))
    }

    fn privilege_escalation(&self) -> Option<Violation> {
        let place = "/securityContext/allowPrivilegeEscalation";
        let bad = self.which(|one| one.pointer(place) != Some(&Value::Bool(false)));
        let text = || format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&bad));
        (!bad.is_empty()).then(|| ("allowPrivilegeEscalation != false", text()))
    }

    fn volume_types(&self) -> Option<Violation> {
        const ALLOWED: [&str; 9] = [
            "configMap",
            "csi",
            "downwardAPI",
            "emptyDir",
            "ephemeral",
            "image",
            "persistentVolumeClaim",
            "projected",
            "secret",
        ];
        let source = |one: &'a Value| {
            let fields = one.as_object().into_iter().flatten();
            fields.map(|(key, _)| key.as_str()).find(|key| *key != "name").unwrap_or("unknown")
        };
        let bad: Vec<&Value> = self.volumes().filter(|one| !ALLOWED.contains(&source(one))).collect();
        let names: Vec<&str> = bad.iter().map(|one| text_at(one, &["name"])).collect();
        let types: BTreeSet<&str> = bad.iter().map(|one| source(one)).collect();
        (!bad.is_empty()).then(|| {
            let detail = format!(
                "{} {} {} {} {}",
                plural("volume", "volumes", names.len()),
                join_quoted(&names),
                plural("uses", "use", names.len()),
                plural("restricted volume type", "restricted volume types", types.len()),
                join_quoted(&types)
            );
            ("restricted volume types", detail)
        })
    }

    fn run_as_non_root(&self) -> Option<Violation> {
        const REASON: &str = "runAsNonRoot != true";
        let (who, _) = self.setters("runAsNonRoot", |value| *value == Value::Bool(false));
        if !who.is_empty() {
            let detail = format!("{} must not set securityContext.runAsNonRoot=false", who.join(" and "));
            return Some((REASON, detail));
        }
        let said = |one: &Value| one.pointer("/securityContext/runAsNonRoot").is_some_and(Value::is_boolean);
        if said(self.spec) {
            return None;
        }
        let silent = self.which(|one| !said(one));
        let text = || format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent));
        (!silent.is_empty()).then(|| (REASON, text()))
    }

    fn run_as_user(&self) -> Option<Violation> {
        let (who, _) = self.setters("runAsUser", |value| value.as_i64() == Some(0));
        let text = || format!("{} must not set runAsUser=0", who.join(" and "));
        (!who.is_empty()).then(|| ("runAsUser=0", text()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn says(level: Level, spec: &Value) -> String {
        together(&violations(LevelVersion { level, minor: None }, None, spec))
    }

    #[test]
    fn restricted_pods_must_say_so() {
        assert_eq!(
            says(Level::Restricted, &json!({"containers": [{"name": "a"}, {"name": "b"}]})),
            "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set \
             securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers \"a\", \"b\" must set \
             securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or containers \"a\", \"b\" must set \
             securityContext.runAsNonRoot=true), seccompProfile (pod or containers \"a\", \"b\" must set \
             securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
        );
        let careful = json!({"containers": [{"name": "c", "securityContext": {"allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}}]});
        assert_eq!(says(Level::Restricted, &careful), "");
    }

    #[test]
    fn baseline_forbids_what_takes_over_a_node() {
        let spec = json!({
            "hostPID": true, "hostIPC": true, "volumes": [{"name": "v", "hostPath": {"path": "/x"}}],
            "containers": [{"name": "c", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}, "procMount": "Default"},
                "ports": [{"containerPort": 80, "hostPort": 80}]}],
        });
        assert_eq!(
            says(Level::Baseline, &spec),
            "non-default capabilities (container \"c\" must not include \"NET_ADMIN\" in securityContext.capabilities.add), \
             host namespaces (hostPID=true, hostIPC=true), hostPath volumes (volume \"v\"), hostPort (container \"c\" uses \
             hostPort 80)"
        );
        assert_eq!(says(Level::Privileged, &spec), "");
        let selinux = json!({"securityContext": {"seLinuxOptions": {"type": "custom_t", "user": "u"}}});
        assert_eq!(
            says(Level::Baseline, &selinux),
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"custom_t\"; user may not be set)"
        );
    }

    #[test]
    fn labels_say_which_level() {
        let (policy, errors) = policy(Some(&json!({"pod-security.kubernetes.io/enforce": "baseline",
            "pod-security.kubernetes.io/enforce-version": "v1.25"})));
        assert!(errors.is_empty());
        assert_eq!(policy.enforce.to_string(), "baseline:v1.25");
        assert_eq!(policy.warn.to_string(), "baseline:v1.25");
        let (_, errors) = super::policy(Some(&json!({"pod-security.kubernetes.io/warn": "odd",
            "pod-security.kubernetes.io/warn-version": "v1.07"})));
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"odd\": must be one of privileged, \
                 baseline, restricted",
                "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"v1.07\": must be \"latest\" or \
                 \"v1.x\"",
            ]
        );
    }
}
