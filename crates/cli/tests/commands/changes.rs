//! Commands that change objects, or show what they would change.

use super::{Here, WEB};

#[test]
fn prune_deletes_what_was_applied_and_is_no_longer_in_the_files() {
    let here = Here::folder();
    here.ok(&["apply", "-f", "web.yaml"]);
    here.ok(&["create", "configmap", "mine"]);
    here.ok(&["label", "cm", "mine", "app=web"]);
    let (_, deployment) = WEB.split_once("---\n").unwrap();
    here.write("web.yaml", deployment);
    let pruned = here.ok(&["apply", "-f", "web.yaml", "--prune", "-l", "app=web"]);
    assert_eq!(pruned, "deployment.apps/web unchanged\nconfigmap/settings pruned\n");
    assert_eq!(
        here.ok(&["get", "cm", "-l", "app=web", "-o", "name"]),
        "configmap/mine\n",
        "it was not applied"
    );
}

#[test]
fn pruning_is_limited_to_kinds_and_can_be_tried() {
    let here = Here::folder();
    here.ok(&["apply", "-f", "web.yaml"]);
    here.write("rest.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rest, labels: {app: web}}\n");
    let prune = ["apply", "-f", "rest.yaml", "--prune", "-l", "app=web"];
    let with = |more: &[&'static str]| [&prune[..], more].concat();
    for (mode, suffix) in [("--dry-run=client", "(dry run)"), ("--dry-run=server", "(server dry run)")] {
        let tried = here.ok(&with(&[mode]));
        let expected = format!(
            "configmap/rest created {suffix}\nconfigmap/settings pruned {suffix}\ndeployment.apps/web pruned {suffix}\n"
        );
        assert_eq!(tried, expected);
    }
    assert_eq!(
        here.ok(&["get", "cm,deploy", "-l", "app=web", "-o", "name"]),
        "configmap/settings\ndeployment.apps/web\n",
        "nothing was changed"
    );
    assert!(
        here.fails(&with(&["--prune-allowlist=apps/v1/Nope"]))
            .contains("no matches for kind \"Nope\" in version \"apps/v1\""),
        "a kind that is not there"
    );
    assert_eq!(
        here.ok(&with(&["--prune-allowlist=apps/v1/Deployment"])),
        "configmap/rest created\ndeployment.apps/web pruned\n",
        "the error came before anything was applied"
    );
    assert_eq!(
        here.ok(&with(&["--prune-allowlist=core/v1/ConfigMap"])),
        "configmap/rest unchanged\nconfigmap/settings pruned\n"
    );
    assert_eq!(here.ok(&["get", "cm,deploy", "-l", "app=web", "-o", "name"]), "configmap/rest\n");
}

#[test]
fn dependents_are_kept_deleted_first_or_deleted_after() {
    for (cascade, children) in [("orphan", "configmap/child\n"), ("foreground", ""), ("background", "")] {
        let here = Here::folder();
        here.ok(&["create", "configmap", "owner"]);
        let uid = here.ok(&["get", "cm/owner", "-o", "jsonpath={.metadata.uid}"]);
        here.write(
            "child.yaml",
            &format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: child\n  labels: {{of: owner}}\n  ownerReferences:\n  \
                 - {{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}\n"
            ),
        );
        here.ok(&["create", "-f", "child.yaml"]);
        assert_eq!(
            here.ok(&["delete", "cm", "owner", &format!("--cascade={cascade}")]),
            "configmap \"owner\" deleted from default namespace\n"
        );
        assert_eq!(here.ok(&["get", "cm", "owner", "--ignore-not-found"]), "", "{cascade}");
        assert_eq!(here.ok(&["get", "cm", "-l", "of=owner", "-o", "name"]), children, "{cascade}");
        if cascade == "orphan" {
            let owners = here.ok(&["get", "cm/child", "-o", "jsonpath={.metadata.ownerReferences}"]);
            assert_eq!(owners, "", "it has no owner any more");
        }
    }
}

#[test]
fn a_dry_run_of_a_patch_shows_the_patched_object() {
    let here = Here::folder();
    here.ok(&["apply", "-f", "web.yaml"]);
    let images =
        "-o=jsonpath={.spec.replicas} {.metadata.labels.app} {.spec.template.spec.containers[*].name}";
    let dry = |type_: &str, patch: &str| {
        here.run(&["patch", "deploy", "web", "--type", type_, "-p", patch, "--dry-run=client", images])
    };
    for (type_, patch, expected) in [
        // Lists of built-in kinds are merged by their keys.
        (
            "strategic",
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"b"}]}}}}"#,
            "2 web side main",
        ),
        ("strategic", r#"{"metadata":{"labels":{"app":null}}}"#, "2  main"),
        ("merge", r#"{"metadata":{"labels":null},"spec":{"replicas":4}}"#, "4  main"),
        ("json", r#"[{"op":"replace","path":"/spec/replicas","value":5}]"#, "5 web main"),
    ] {
        let told = dry(type_, patch);
        assert_eq!((told.code, told.out.as_str()), (0, expected), "{type_} {patch}: {}", told.err);
    }
    let failed = dry("json", r#"[{"op":"test","path":"/spec/replicas","value":9}]"#);
    assert_eq!((failed.code, failed.out.as_str()), (1, ""));
    assert!(failed.err.contains("testing value /spec/replicas failed"), "{}", failed.err);
    assert_eq!(
        here.ok(&["patch", "deploy", "web", "-p", r#"{"spec":{"replicas":2}}"#, "--dry-run=client"]),
        "deployment.apps/web patched (no change) (dry run)\n"
    );
    assert_eq!(here.ok(&["get", "deploy/web", images]), "2 web main", "nothing was changed");

    let applied =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: null, size: big}\n";
    here.write("settings.yaml", applied);
    let merged = here.ok(&["apply", "-f", "settings.yaml", "--dry-run=client", "-o", "jsonpath={.data}"]);
    assert_eq!(merged, r#"{"size":"big"}"#, "a null removes");
    let file = here.ok(&["create", "-f", "settings.yaml", "--dry-run=client", "-o", "jsonpath={.metadata}"]);
    assert_eq!(file, r#"{"name":"settings","namespace":"default"}"#, "where the file's object would go");
    let described = here.ok(&["create", "configmap", "x", "--dry-run=client", "-o", "yaml"]);
    assert_eq!(described, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n");
    let placed = here.ok(&["create", "configmap", "x", "-n", "shop", "--dry-run=client", "-o", "yaml"]);
    assert_eq!(placed, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  namespace: shop\n");
}
