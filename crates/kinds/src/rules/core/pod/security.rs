//! Security contexts of pods and containers, and the annotations that preceded them.

use k1s_object::{At, names};

use crate::rules::helpers::{
    go_values::{
        GoField::{self, Pointer, Struct, Text},
        go_struct,
    },
    text::{descending_path, dns_subdomain, one_of_or_unset},
};

const PROFILE: &[(&str, &str, GoField)] =
    &[("Type", "type", Text), ("LocalhostProfile", "localhostProfile", Pointer)];

/// `SecurityContext` as error messages show it.
const SECURITY_CONTEXT: &[(&str, &str, GoField)] = &[
    ("Capabilities", "capabilities", Struct(&[("Add", "add", Pointer), ("Drop", "drop", Pointer)])),
    ("Privileged", "privileged", Pointer),
    (
        "SELinuxOptions",
        "seLinuxOptions",
        Struct(&[
            ("User", "user", Text),
            ("Role", "role", Text),
            ("Type", "type", Text),
            ("Level", "level", Text),
        ]),
    ),
    (
        "WindowsOptions",
        "windowsOptions",
        Struct(&[
            ("GMSACredentialSpecName", "gmsaCredentialSpecName", Pointer),
            ("GMSACredentialSpec", "gmsaCredentialSpec", Pointer),
            ("RunAsUserName", "runAsUserName", Pointer),
            ("HostProcess", "hostProcess", Pointer),
        ]),
    ),
    ("RunAsUser", "runAsUser", Pointer),
    ("RunAsGroup", "runAsGroup", Pointer),
    ("RunAsNonRoot", "runAsNonRoot", Pointer),
    ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", Pointer),
    ("AllowPrivilegeEscalation", "allowPrivilegeEscalation", Pointer),
    ("ProcMount", "procMount", Pointer),
    ("SeccompProfile", "seccompProfile", Struct(PROFILE)),
    ("AppArmorProfile", "appArmorProfile", Struct(PROFILE)),
];

fn user_id(at: At<'_, '_>) {
    if let Some(id) = at.int() {
        names::is_valid_user_id(id).into_iter().for_each(|message| at.invalid(message));
    }
}

fn group_id(at: At<'_, '_>) {
    if let Some(id) = at.int() {
        names::is_valid_group_id(id).into_iter().for_each(|message| at.invalid(message));
    }
}

/// The security context of a container.
pub(crate) fn container(at: At<'_, '_>, host_users: bool) {
    if !at.is_set() {
        return;
    }
    user_id(at.get("runAsUser"));
    group_id(at.get("runAsGroup"));
    let proc_mount = at.get("procMount");
    one_of_or_unset(proc_mount, &["Default", "Unmasked"]);
    if host_users && proc_mount.text() == "Unmasked" {
        proc_mount.invalid("`hostUsers` must be false to use `Unmasked`");
    }
    seccomp(at.get("seccompProfile"));
    if at.get("allowPrivilegeEscalation").bool() == Some(false) {
        let shown = || at.value().map_or(serde_json::Value::Null, |value| go_struct(value, SECURITY_CONTEXT));
        if at.get("privileged").is_true() {
            at.invalid_as(shown(), "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        }
        for capability in at.get("capabilities").get("add").items() {
            if capability.text() == "CAP_SYS_ADMIN" {
                at.invalid_as(
                    shown(),
                    "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
                );
            }
        }
    }
    windows_options(at.get("windowsOptions"));
    app_armor(at.get("appArmorProfile"));
}

/// The security context of a pod.
pub(crate) fn pod(spec: At<'_, '_>) {
    let at = spec.get("securityContext");
    if !at.is_set() {
        return;
    }
    group_id(at.get("fsGroup"));
    user_id(at.get("runAsUser"));
    group_id(at.get("runAsGroup"));
    for group in at.get("supplementalGroups").items() {
        group_id(group);
    }
    sysctls(at.get("sysctls"), spec);
    one_of_or_unset(at.get("fsGroupChangePolicy"), &["Always", "OnRootMismatch"]);
    seccomp(at.get("seccompProfile"));
    windows_options(at.get("windowsOptions"));
    app_armor(at.get("appArmorProfile"));
    one_of_or_unset(at.get("supplementalGroupsPolicy"), &["Merge", "Strict"]);
    one_of_or_unset(at.get("seLinuxChangePolicy"), &["MountOption", "Recursive"]);
}

fn sysctls(list: At<'_, '_>, spec: At<'_, '_>) {
    let mut seen = std::collections::HashSet::new();
    for sysctl in list.items() {
        let name = sysctl.get("name");
        let text = name.text();
        if text.is_empty() {
            name.required("");
        } else if !is_sysctl(text) {
            name.invalid(
                "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
            );
        } else if seen.contains(&text) {
            name.duplicate();
        }
        let dotted = text.replace('/', ".");
        if spec.get("hostNetwork").is_true() && dotted.starts_with("net.") {
            name.invalid_text("may not be specified when 'hostNetwork' is true");
        } else if spec.get("hostIPC").is_true()
            && (dotted.starts_with("kernel.shm")
                || dotted.starts_with("kernel.msg")
                || dotted == "kernel.sem"
                || dotted.starts_with("fs.mqueue."))
        {
            name.invalid_text("may not be specified when 'hostIPC' is true");
        }
        seen.insert(text);
    }
}

fn is_sysctl(name: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 253
        && name.split(['.', '/']).all(|segment| {
            let bytes = segment.as_bytes();
            bytes.first().is_some_and(|b| alphanumeric(*b))
                && bytes.last().is_some_and(|b| alphanumeric(*b))
                && bytes.iter().all(|b| alphanumeric(*b) || matches!(b, b'-' | b'_'))
        })
}

const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

fn seccomp(at: At<'_, '_>) {
    if !at.is_set() {
        return;
    }
    let (kind, profile) = (at.get("type"), at.get("localhostProfile"));
    if kind.is_empty() {
        kind.required("type is required when seccompProfile is set");
    } else if !PROFILE_TYPES.contains(&kind.text()) {
        kind.not_supported(&PROFILE_TYPES);
    }
    match (kind.text() == "Localhost", profile.is_set()) {
        (true, false) => profile.required("must be set when seccomp type is Localhost"),
        (true, true) => descending_path(profile, profile.text()),
        (false, true) => profile.invalid_as(
            at.value().map_or(serde_json::Value::Null, |value| go_struct(value, PROFILE)),
            "can only be set when seccomp type is Localhost",
        ),
        (false, false) => {}
    }
}

fn app_armor(at: At<'_, '_>) {
    if !at.is_set() {
        return;
    }
    let (kind, profile) = (at.get("type"), at.get("localhostProfile"));
    match kind.text() {
        "Localhost" => {
            if !profile.is_set() {
                profile.required("must be set when AppArmor type is Localhost");
                return;
            }
            let trimmed = profile.text().trim();
            if trimmed != profile.text() {
                profile.invalid("must not be padded with whitespace");
            } else if trimmed.is_empty() {
                profile.required("must be set when AppArmor type is Localhost");
            }
            if profile.text().len() > 4095 {
                profile.too_long(4095);
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if profile.is_set() {
                profile.invalid("can only be set when AppArmor type is Localhost");
            }
        }
        "" => kind.required("type is required when appArmorProfile is set"),
        _ => kind.not_supported(&PROFILE_TYPES),
    }
}

fn windows_options(at: At<'_, '_>) {
    if !at.is_set() {
        return;
    }
    let name = at.get("gmsaCredentialSpecName");
    if name.is_set() {
        dns_subdomain(name);
    }
    let spec = at.get("gmsaCredentialSpec");
    match spec.str().map(str::len) {
        Some(0) => spec.invalid("gmsaCredentialSpec cannot be an empty string"),
        Some(length) if length > 64 * 1024 => {
            spec.invalid("gmsaCredentialSpec size must be under 64 KiB");
        }
        _ => {}
    }
    let user_name = at.get("runAsUserName");
    if let Some(text) = user_name.str() {
        windows_user(user_name, text);
    }
}

fn windows_user(at: At<'_, '_>, text: &str) {
    if text.is_empty() {
        at.invalid("runAsUserName cannot be an empty string");
        return;
    }
    if text.chars().any(|c| c.is_ascii_control()) {
        at.invalid("runAsUserName cannot contain control characters");
        return;
    }
    let (domain, user) = match text.split_once('\\') {
        Some((_, rest)) if rest.contains('\\') => {
            at.invalid("runAsUserName cannot contain more than one backslash");
            return;
        }
        Some((domain, user)) => (Some(domain), user),
        None => (None, text),
    };
    if let Some(domain) = domain {
        if domain.len() >= 256 {
            at.invalid("runAsUserName's Domain length must be under 256 characters");
        }
        let forbidden = ['\\', '/', ':', '*', '?', '"', '<', '>', '|'];
        let net_bios = (1..=15).contains(&domain.chars().count())
            && !domain.starts_with('.')
            && !domain.contains(forbidden);
        let dns = domain.split('.').all(|label| {
            label.len() <= 63
                && label.starts_with(|c: char| c.is_ascii_alphanumeric())
                && label.ends_with(|c: char| c.is_ascii_alphanumeric())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        });
        if !net_bios && !dns {
            at.invalid("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
        }
    }
    if user.is_empty() {
        at.invalid("runAsUserName's User cannot be empty");
    } else if user.len() > 104 {
        at.invalid("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| c == '.' || c == ' ') {
        at.invalid("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        at.invalid("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
}

/// Either all containers are host process containers, or none.
pub(crate) fn host_process(spec: At<'_, '_>) {
    let of = |at: At<'_, '_>| at.get("securityContext").get("windowsOptions").get("hostProcess").bool();
    let of_pod = of(spec);
    let (mut all, mut in_host) = (0, 0);
    for container in super::spec::containers(spec) {
        all += 1;
        let own = of(container);
        if let (Some(pod), Some(own)) = (of_pod, own)
            && pod != own
        {
            container
                .get("securityContext")
                .get("windowsOptions")
                .get("hostProcess")
                .invalid(format!("pod hostProcess value must be identical if both are specified, was {pod}"));
        }
        in_host += usize::from(own.or(of_pod) == Some(true));
    }
    if in_host == 0 {
        return;
    }
    if in_host != all {
        spec.invalid_as(
            "",
            "If pod contains any hostProcess containers then all containers must be HostProcess containers",
        );
    }
    if !spec.get("hostNetwork").is_true() {
        spec.get("hostNetwork")
            .invalid_as(false, "hostNetwork must be true if pod contains any hostProcess containers");
    }
}

/// Fields that the operating system of a pod forbids.
pub(crate) fn operating_system(spec: At<'_, '_>) {
    let os = spec.get("os");
    if !os.is_set() {
        return;
    }
    let name = os.get("name");
    match name.text() {
        "" => name.required(""),
        "linux" => {
            const WHY: &str = "windows options cannot be set for a linux pod";
            let forbid = |at: At<'_, '_>| {
                let options = at.get("securityContext").get("windowsOptions");
                if options.is_set() {
                    options.forbidden(WHY);
                }
            };
            forbid(spec);
            super::spec::containers(spec).for_each(forbid);
        }
        "windows" => windows(spec),
        _ => os.with(name.value()).not_supported(&["linux", "windows"]),
    }
}

fn windows(spec: At<'_, '_>) {
    const WHY: &str = "cannot be set for a windows pod";
    let forbid = |at: At<'_, '_>, fields: &[&'static str]| {
        for field in fields {
            let at = at.get(field);
            let forbidden = match *field {
                "hostPID" | "hostIPC" => at.is_true(),
                "sysctls" => !at.is_empty(),
                _ => at.is_set(),
            };
            if forbidden {
                at.forbidden(WHY);
            }
        }
    };
    forbid(
        spec.get("securityContext"),
        &[
            "appArmorProfile",
            "seLinuxOptions",
            "seccompProfile",
            "fsGroup",
            "fsGroupChangePolicy",
            "sysctls",
            "runAsUser",
            "runAsGroup",
            "supplementalGroups",
            "supplementalGroupsPolicy",
            "seLinuxChangePolicy",
        ],
    );
    forbid(spec, &["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"]);
    for container in super::spec::containers(spec) {
        forbid(
            container.get("securityContext"),
            &[
                "appArmorProfile",
                "seLinuxOptions",
                "seccompProfile",
                "capabilities",
                "readOnlyRootFilesystem",
                "privileged",
                "allowPrivilegeEscalation",
                "procMount",
                "runAsUser",
                "runAsGroup",
            ],
        );
    }
}

/// The formats of annotations of pods and templates.
pub(crate) fn annotations(at: At<'_, '_>, spec: At<'_, '_>) {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let mirror = at.key(MIRROR);
    if mirror.is_set() && spec.get("nodeName").is_empty() {
        mirror.invalid("must set spec.nodeName if mirror pod annotation is set");
    }
    let cost = at.key(DELETION_COST);
    if let Some(text) = cost.str()
        && (text.starts_with('+')
            || text.parse::<i32>().is_err()
            || (text.len() > 1 && text.starts_with('0')))
    {
        cost.invalid("must be a 32bit integer");
    }
    let seccomp_form = |at: At<'_, '_>| {
        let text = at.text();
        match text.strip_prefix("localhost/") {
            Some(path) => descending_path(at, path),
            None if matches!(text, "runtime/default" | "docker/default" | "unconfined") => {}
            None => at.invalid("must be a valid seccomp profile"),
        }
    };
    let whole = at.get("seccomp.security.alpha.kubernetes.io/pod");
    if whole.is_set() {
        seccomp_form(whole);
    }
    for (key, _) in at.entries() {
        if key.starts_with("container.seccomp.security.alpha.kubernetes.io/") {
            seccomp_form(at.get(key));
        }
    }
    for (key, value) in at.entries() {
        let Some(container) = key.strip_prefix(APP_ARMOR) else { continue };
        if !super::spec::containers(spec).any(|one| one.get("name").text() == container) {
            value.invalid_as(container, "container not found");
        }
        let text = value.text();
        if !(matches!(text, "" | "runtime/default" | "unconfined") || text.starts_with("localhost/")) {
            value.invalid(format!("invalid AppArmor profile name: {text:?}"));
        }
    }
}

/// The prefix of the annotations with the `AppArmor` profiles of containers.
pub(crate) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// An annotation and a field with a profile for the same container must agree.
pub(crate) fn annotations_match_fields(metadata: At<'_, '_>, spec: At<'_, '_>) {
    let annotations = metadata.get("annotations");
    let compare = |field: At<'_, '_>, annotation: &str, what: &str| {
        let profile = field.get("localhostProfile");
        let fits = match field.get("type").text() {
            "Unconfined" => annotation == "unconfined",
            "RuntimeDefault" => {
                annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default")
            }
            "Localhost" => match annotation.strip_prefix("localhost/") {
                Some(named) if profile.str() != Some(named) => {
                    profile.forbidden(format!("{what} profile in annotation and field must match"));
                    return;
                }
                named => named.is_some(),
            },
            _ => true,
        };
        if !fits {
            field.get("type").forbidden(format!("{what} type in annotation and field must match"));
        }
    };
    let of_pod = spec.get("securityContext").get("seccompProfile");
    if of_pod.is_set()
        && let Some(annotation) = annotations.key("seccomp.security.alpha.kubernetes.io/pod").str()
    {
        compare(of_pod, annotation, "seccomp");
    }
    let annotation_of = |prefix: &str, container: At<'_, '_>| {
        let key = format!("{prefix}{}", container.get("name").text());
        annotations.value().and_then(|map| map.get(&key)).and_then(serde_json::Value::as_str)
    };
    for container in super::spec::containers(spec) {
        let profile = container.get("securityContext").get("seccompProfile");
        if profile.is_set()
            && let Some(annotation) =
                annotation_of("container.seccomp.security.alpha.kubernetes.io/", container)
        {
            compare(profile, annotation, "seccomp");
        }
    }
    if spec.get("os").get("name").text() == "windows" {
        return;
    }
    let of_pod = spec.get("securityContext").get("appArmorProfile");
    for container in super::spec::containers(spec) {
        let own = container.get("securityContext").get("appArmorProfile");
        let profile = if own.is_set() { own } else { own.with(of_pod.value()) };
        if profile.is_set()
            && let Some(annotation) = annotation_of(APP_ARMOR, container)
        {
            compare(profile, annotation, "apparmor");
        }
    }
}
