//! Tests of the rules of Service, and of allocation.

use serde_json::json;

use super::*;
use crate::{allocation::*, rules::helpers::testing};

fn said(mut service: Value) -> Vec<String> {
    defaults(&mut service);
    match allocation_plan(&mut service, None) {
        Err(AllocationError::Invalid(errors)) => errors.iter().map(ToString::to_string).collect(),
        Err(AllocationError::Internal(error)) => vec![error],
        Ok(_) => testing::on_create(&RULES, service),
    }
}

fn stored(mut service: Value) -> Value {
    defaults(&mut service);
    let plan = allocation_plan(&mut service, None).unwrap();
    for (i, take) in plan.take_ips.iter().enumerate() {
        let ip = take.ip.clone().unwrap_or_else(|| format!("10.0.0.{}", i + 10));
        AllocationPlan::set_ip(&mut service, take, &ip);
    }
    for (i, take) in plan.take_ports.iter().enumerate() {
        AllocationPlan::set_port(&mut service, take, take.port.unwrap_or(30001 + i as i64));
    }
    (RULES.prepare_create)(&mut service);
    service
}

#[test]
fn a_plain_one_gets_an_ip_and_defaults() {
    assert_eq!(
        stored(json!({"spec": {"ports": [{"port": 80}]}})),
        json!({"spec": {
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
            "internalTrafficPolicy": "Cluster",
            "ipFamilyPolicy": "SingleStack",
            "ipFamilies": ["IPv4"],
            "clusterIPs": ["10.0.0.10"],
            "clusterIP": "10.0.0.10",
        }})
    );
}

#[test]
fn headless_ones_have_families_but_no_ip() {
    let plain = stored(json!({"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}));
    assert_eq!(plain["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(plain["spec"]["ipFamilyPolicy"], "RequireDualStack");
    assert_eq!(plain["spec"]["clusterIPs"], json!(["None"]));
    let selecting = stored(json!({"spec": {"clusterIP": "None", "selector": {"a": "b"}}}));
    assert_eq!(selecting["spec"]["ipFamilies"], json!(["IPv4"]));
    assert!(allocated(&plain).ips.is_empty());
}

#[test]
fn errors_have_the_words_of_kubernetes() {
    for (spec, errors) in [
        (json!({}), &["spec.ports: Required value"][..]),
        (
            json!({"ports": [{"port": 0}, {"port": 80}]}),
            &[
                "spec.ports[0].name: Required value",
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[1].name: Required value",
            ],
        ),
        (
            json!({"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}, {"port": 81, "name": "a"}]}),
            &[
                "spec.ports[2].name: Duplicate value: \"a\"",
                "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\
                 \"Port\":80,\"TargetPort\":0,\"NodePort\":0}",
            ],
        ),
        (
            json!({"type": "Cloud", "ports": [{"port": 80, "protocol": "HTTP"}], "sessionAffinity": "Glue"}),
            &[
                "spec.ports[0].protocol: Unsupported value: \"HTTP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
                "spec.sessionAffinity: Unsupported value: \"Glue\": supported values: \"ClientIP\", \"None\"",
                "spec.type: Unsupported value: \"Cloud\": supported values: \"ClusterIP\", \"ExternalName\", \
                 \"LoadBalancer\", \"NodePort\"",
            ],
        ),
        (
            json!({"clusterIP": "bogus", "ports": [{"port": 80}]}),
            &["spec.clusterIPs[0]: Invalid value: \"bogus\": must be a valid IP address, (e.g. 10.9.8.7 or \
               2001:db8::ffff)"],
        ),
        (
            json!({"clusterIP": "None", "type": "NodePort", "ports": [{"port": 1}]}),
            &["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
        ),
        (json!({"type": "ExternalName"}), &["spec.externalName: Required value"]),
        (
            json!({"type": "ExternalName", "externalName": "x.", "clusterIP": "10.0.0.9"}),
            &["spec.clusterIPs: Forbidden: may not be set for ExternalName services"],
        ),
        (
            json!({"externalIPs": ["127.0.0.1", "x"], "ports": [{"port": 80, "targetPort": "way-too-long-port-name"}]}),
            &[
                "spec.ports[0].targetPort: Invalid value: \"way-too-long-port-name\": must be no more than 15 \
                 characters",
                "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, \
                 ::1/128)",
                "spec.externalIPs[1]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or \
                 2001:db8::ffff)",
            ],
        ),
        (
            json!({"ipFamilies": ["IPv6"], "ports": [{"port": 80}]}),
            &["spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"],
        ),
        (
            json!({"ipFamilyPolicy": "RequireDualStack", "ports": [{"port": 80}]}),
            &[
                "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for \
               dual-stack services",
            ],
        ),
    ] {
        assert_eq!(said(json!({"spec": spec.clone()})), errors, "{spec}");
    }
}

#[test]
fn two_protocols_of_a_port_share_a_node_port() {
    let spec = json!({"type": "NodePort", "ports": [
        {"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}, {"name": "x", "port": 1, "nodePort": 30500},
    ]});
    let service = stored(json!({"spec": spec}));
    let ports: Vec<_> =
        list_at(&service, &["spec", "ports"]).iter().map(|port| port["nodePort"].clone()).collect();
    assert_eq!(ports, [json!(30001), json!(30001), json!(30500)]);
    assert_eq!(allocated(&service).ports, [30001, 30500]);
}

#[test]
fn a_change_of_type_frees_what_the_old_one_had() {
    let old = stored(json!({"spec": {"type": "NodePort", "ports": [{"port": 80}]}}));
    let mut new = old.clone();
    set_in(&mut new, "spec", "type", "ExternalName");
    set_in(&mut new, "spec", "externalName", "example.com");
    let plan = allocation_plan(&mut new, Some(&old)).unwrap();
    assert_eq!(plan.free_ips, ["10.0.0.10"]);
    assert_eq!(plan.free_ports, [30001]);
    assert!(testing::on_update(&RULES, old.clone(), new.clone()).is_empty());
    prepare_update(&mut new, &old);
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "externalTrafficPolicy"] {
        assert!(find(&new, &["spec", field]).is_none(), "{field}");
    }
}

#[test]
fn a_put_without_ip_keeps_it_and_another_ip_is_refused() {
    let old = stored(json!({"spec": {"ports": [{"port": 80}]}}));
    let mut new = json!({"spec": {"ports": [{"port": 81}]}});
    defaults(&mut new);
    assert_eq!(allocation_plan(&mut new, Some(&old)), Ok(AllocationPlan::default()));
    assert_eq!(text_at(&new, &["spec", "clusterIP"]), "10.0.0.10");
    set_in(&mut new, "spec", "clusterIP", "10.0.77.77");
    allocation_plan(&mut new, Some(&old)).unwrap();
    assert_eq!(
        testing::on_update(&RULES, old, new),
        ["spec.clusterIPs[0]: Invalid value: [\"10.0.77.77\"]: may not change once set"]
    );
}

#[test]
fn refusals_have_their_words() {
    let range = k1s_object::ip::parse_cidr_sloppy("10.0.0.0/16").unwrap();
    for (ip, error) in [
        ("10.0.3.4", None),
        ("1.2.3.4", Some(IP_OUTSIDE.to_owned())),
        (
            "10.0.0.0",
            Some("the provided IP (10.0.0.0) is not in the valid range. The range of valid IPs is 10.0.0.0/16".into()),
        ),
        (
            "10.0.255.255",
            Some(
                "the provided IP (10.0.255.255) is not in the valid range. The range of valid IPs is 10.0.0.0/16".into(),
            ),
        ),
    ] {
        assert_eq!(ip_in_range(ip.parse().unwrap(), range).err(), error, "{ip}");
    }
    let service = json!({"spec": {"clusterIPs": ["1.2.3.4"]}});
    assert_eq!(
        ip_refused(&service, "1.2.3.4", IP_OUTSIDE).to_string(),
        "spec.clusterIPs: Invalid value: [\"1.2.3.4\"]: failed to allocate IP 1.2.3.4: the provided network does not \
         match the current range"
    );
    let take = TakePort { place: Place::Ports(vec![0]), port: Some(80) };
    let AllocationError::Invalid(errors) = port_refused(&take, &port_out_of_range("30000-32767")) else {
        panic!("an error of a field")
    };
    assert_eq!(
        errors[0].to_string(),
        "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports \
         is 30000-32767"
    );
}

#[test]
fn outdated_fields_warn() {
    assert_eq!(
        testing::warnings(
            &RULES,
            json!({"spec": {"type": "LoadBalancer", "externalIPs": ["192.0.2.1"], "trafficDistribution": "PreferClose"}})
        ),
        [
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
        ]
    );
}
