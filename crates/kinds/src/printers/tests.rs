//! Rows recorded from kube-apiserver.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{columns, conditions, human_duration, printer, row};

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn with_name(mut object: Value) -> Value {
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:55:00Z");
    object
}

fn cells(group: &str, kind: &str, object: Value) -> Value {
    Value::Array(row(group, kind, &with_name(object), now()))
}

#[test]
fn every_row_has_a_cell_for_every_column() {
    for kind in crate::kinds() {
        let cells = row(kind.group, kind.kind, &json!({}), now()).len();
        let columns = columns(kind.group, kind.kind).len();
        // In Kubernetes rows of IP addresses have an age without a column.
        let extra = usize::from(kind.kind == "IPAddress");
        assert_eq!(cells, columns + extra, "{}", kind.kind);
    }
}

#[test]
fn a_kind_without_a_printer_shows_when_it_was_created() {
    assert_eq!(cells("rbac.authorization.k8s.io", "Role", json!({})), json!(["x", "2026-01-01T00:55:00Z"]));
    let names: Vec<&str> = columns("", "LimitRange").iter().map(|column| column.name).collect();
    assert_eq!(names, ["Name", "Created At"]);
}

#[test]
fn durations_are_short() {
    for (seconds, want) in [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_520, "3h12m"),
        (28_800, "8h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (691_200, "8d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (252_288_000, "8y"),
    ] {
        assert_eq!(human_duration(seconds * 1_000_000_000), want, "{seconds}");
    }
}

#[test]
fn a_pod_shows_what_its_containers_do() {
    let pod = |status: Value| {
        let object =
            json!({"spec": {"containers": [{}, {}], "initContainers": [{"name": "i"}]}, "status": status});
        let cells = cells("", "Pod", object);
        (cells[1].clone(), cells[2].clone(), cells[3].clone())
    };
    let shown = |ready: &str, status: &str, restarts: &str| (json!(ready), json!(status), json!(restarts));
    let done = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    let running = json!({"running": {}});
    assert_eq!(pod(json!({"phase": "Pending"})), shown("0/2", "Pending", "0"));
    assert_eq!(
        pod(json!({"phase": "Running", "containerStatuses": [
            {"ready": true, "state": running, "restartCount": 2,
             "lastState": {"terminated": {"finishedAt": "2026-01-01T00:59:00Z"}}},
            {"ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 1},
        ]})),
        shown("1/2", "CrashLoopBackOff", "3 (60s ago)")
    );
    assert_eq!(
        pod(json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": running}]})),
        shown("0/2", "Init:0/1", "0")
    );
    assert_eq!(
        pod(json!({"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "restartCount": 4, "state": {"terminated": {"exitCode": 3}}}]})),
        shown("0/2", "Init:ExitCode:3", "4")
    );
    assert_eq!(
        pod(json!({"phase": "Running", "containerStatuses": [
            {"state": done}, {"ready": true, "state": running}]})),
        shown("1/2", "NotReady", "0")
    );
    assert_eq!(
        pod(json!({"phase": "Failed", "containerStatuses": [
            {"state": done}, {"state": {"terminated": {"exitCode": 1, "signal": 9}}}]})),
        shown("0/2", "Signal:9", "0")
    );
    assert_eq!(
        pod(
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]})
        ),
        shown("0/2", "SchedulingGated", "0")
    );
    let deleted =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:59:00Z"}, "status": {"phase": "Running"}});
    assert_eq!(cells("", "Pod", deleted)[2], "Terminating");
}

#[test]
fn a_pod_that_has_ended_says_so_in_its_row() {
    let want = json!([{
        "type": "Completed", "status": "True", "reason": "Succeeded",
        "message": "The pod has completed successfully.",
    }]);
    assert_eq!(conditions("", "Pod", &json!({"status": {"phase": "Succeeded"}})), Some(want));
    assert_eq!(conditions("", "Pod", &json!({"status": {"phase": "Running"}})), None);
    assert_eq!(conditions("batch", "Job", &json!({"status": {"phase": "Succeeded"}})), None);
}

#[test]
fn rows_of_workloads() {
    let template =
        json!({"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]}});
    let selector = json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
        {"key": "c", "operator": "In", "values": ["y", "x"]}, {"key": "d", "operator": "DoesNotExist"}]});
    let spec = json!({"replicas": 2, "template": template, "selector": selector});
    let status = json!({"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1, "replicas": 2});
    assert_eq!(
        cells("apps", "Deployment", json!({"spec": spec, "status": status})),
        json!(["x", "1/2", 2, 1, "5m", "a,b", "i,j", "a=1,b=2,c in (x,y),!d"])
    );
    assert_eq!(
        cells("apps", "ReplicaSet", json!({"spec": {"template": template}, "status": status})),
        json!(["x", 0, 2, 1, "5m", "a,b", "i,j", "<none>"])
    );
    assert_eq!(
        cells(
            "batch",
            "Job",
            json!({
                "spec": {"parallelism": 3, "template": template, "selector": selector},
                "status": {"succeeded": 1, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:30Z",
                           "conditions": [{"type": "Complete", "status": "True"}]},
            })
        ),
        json!(["x", "Complete", "1/1 of 3", "30s", "5m", "a,b", "i,j", "a=1,b=2,c in (x,y),!d"])
    );
    assert_eq!(
        cells(
            "autoscaling",
            "HorizontalPodAutoscaler",
            json!({
                "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3, "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}},
                    {"type": "Pods", "pods": {"target": {"averageValue": "10"}}},
                    {"type": "External", "external": {"target": {"value": "1"}}},
                ]},
                "status": {"currentMetrics": [{"type": "Resource", "resource": {"current": {"averageUtilization": 20}}}]},
            })
        ),
        json!(["x", "Deployment/d", "cpu: 20%/50%, <unknown>/10 + 1 more...", "<unset>", 3, 0, "5m"])
    );
}

#[test]
fn rows_of_the_core() {
    assert_eq!(
        cells(
            "",
            "Service",
            json!({
                "spec": {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "externalIPs": ["1.2.3.4"], "selector": {"a": "b"},
                         "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]},
                "status": {"loadBalancer": {"ingress": [{"hostname": "lb"}, {"ip": "5.6.7.8"}]}},
            })
        ),
        json!(["x", "LoadBalancer", "10.0.0.1", "5.6.7.8,lb,1.2.3.4", "80:30080/TCP,53/UDP", "5m", "a=b"])
    );
    assert_eq!(
        cells(
            "",
            "Endpoints",
            json!({"subsets": [
            {"addresses": [{"ip": "1.1.1.1"}, {"ip": "::1"}], "ports": [{"port": 80}, {"port": 81}]}]})
        ),
        json!(["x", "1.1.1.1:80,[::1]:80,1.1.1.1:81 + 1 more...", "5m"])
    );
    assert_eq!(
        cells(
            "",
            "Event",
            json!({
                "type": "Normal", "reason": "R", "message": " m\n", "involvedObject": {"kind": "Pod", "name": "p"},
                "source": {"component": "kubelet", "host": "h"}, "eventTime": null,
                "firstTimestamp": "2026-01-01T00:50:00Z", "count": 4,
            })
        ),
        json!(["10m", "Normal", "R", "pod/p", "", "kubelet, h", "m", "10m", 4, "x"])
    );
    assert_eq!(
        cells(
            "",
            "ResourceQuota",
            json!({"status": {
            "hard": {"limits.cpu": "2", "pods": "5", "cpu": "1"}, "used": {"pods": "3"}}})
        ),
        json!(["x", "cpu: 0/1, pods: 3/5", "limits.cpu: 0/2", "5m"])
    );
    assert_eq!(
        cells(
            "",
            "Node",
            json!({
                "metadata": {"labels": {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}},
                "spec": {"unschedulable": true},
                "status": {"conditions": [{"type": "Ready", "status": "False"}],
                           "nodeInfo": {"kubeletVersion": "v1", "architecture": "arm64"}},
            })
        ),
        json!([
            "x",
            "NotReady,SchedulingDisabled",
            "a,b",
            "5m",
            "v1",
            "<none>",
            "<none>",
            "<unknown>",
            "<unknown> (arm64)",
            "<unknown>"
        ])
    );
}

#[test]
fn a_list_of_storage_classes_marks_the_default() {
    let class = |name: &str, created: &str| {
        json!({"metadata": {"name": name, "creationTimestamp": created,
               "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}})
    };
    let (old, new) = (class("old", "2025-01-01T00:00:00Z"), class("new", "2026-01-01T00:00:00Z"));
    let printer = printer("storage.k8s.io", "StorageClass");
    let names: Vec<Value> =
        printer.rows(&[&old, &new], now()).into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(names, ["old", "new (default)"]);
    assert_eq!(printer.row(&new, now())[0], "new");
}
