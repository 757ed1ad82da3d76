//! Resource requirements of pods and containers.

use std::collections::{BTreeMap, BTreeSet};

use k1s_object::{At, FieldError, field::ErrorKind, field::Shown, names, quantity::Quantity};
use serde_json::Value;

use crate::rules::helpers::{
    errors::invalid_each,
    json::{child, existing, object, zero},
    quantities,
    quantities::is_whole,
    resource_names::{
        container_resource_name, is_huge_page, is_integer_resource, is_overcommit_allowed, is_pod_level,
        resource_name,
    },
    text::dns_label,
};

fn pod_name(at: At<'_, '_>, name: &str) {
    if resource_name(name, at) && !is_pod_level(name) {
        at.check().push(FieldError::not_supported(at.path(), name, &["cpu", "hugepages-", "memory"]));
    }
}

fn amount(at: At<'_, '_>, name: &str) {
    let Some(quantity) = quantities::parse(at.text()) else { return };
    if quantity.sign() < 0 {
        at.invalid("must be greater than or equal to 0");
    }
    if is_integer_resource(name) && !is_whole(&quantity) {
        at.invalid("must be an integer");
    }
}

fn huge_pages_fit(at: At<'_, '_>, name: &str) {
    let size = name.strip_prefix("hugepages-").and_then(quantities::parse);
    let fits = match (size, quantities::parse(at.text())) {
        (Some(size), Some(amount)) => {
            size.value() > 0 && size.is_integer() && amount.value() % size.value() == 0
        }
        _ => false,
    };
    if !fits {
        at.invalid(format!("{} is not positive integer multiple of {name}", at.text()));
    }
}

/// The requirements of a container.
pub(crate) fn container(at: At<'_, '_>, claims: &BTreeSet<&str>) {
    requirements(at, |at, name| container_resource_name(name, at), claims);
}

fn requirements(at: At<'_, '_>, check_name: fn(At<'_, '_>, &str), claims: &BTreeSet<&str>) {
    let (limits, requests) = (at.get("limits"), at.get("requests"));
    let (mut huge, mut compute) = (false, false);
    for (name, limit) in limits.entries() {
        check_name(limit, name);
        amount(limit, name);
        if is_huge_page(name) {
            huge = true;
            huge_pages_fit(limit, name);
        }
        compute |= matches!(name, "cpu" | "memory");
    }
    for (name, request) in requests.entries() {
        check_name(request, name);
        amount(request, name);
        let limit = limits.key(name);
        match (quantities::parse(request.text()), quantities::parse(limit.text())) {
            (Some(wanted), Some(most)) if wanted != most && !is_overcommit_allowed(name) => requests
                .invalid_as(request.text(), format!("must be equal to {name} limit of {}", limit.text())),
            (Some(wanted), Some(most)) if wanted > most => requests.invalid_as(
                request.text(),
                format!("must be less than or equal to {name} limit of {}", limit.text()),
            ),
            (_, None) if !is_overcommit_allowed(name) => {
                limits.required("Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
        if is_huge_page(name) {
            huge = true;
            huge_pages_fit(request, name);
        }
        compute |= matches!(name, "cpu" | "memory");
    }
    if huge && !compute {
        at.forbidden("HugePages require cpu or memory");
    }
    claim_names(at.get("claims"), claims);
}

fn claim_names(list: At<'_, '_>, known: &BTreeSet<&str>) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for claim in list.items() {
        let (name, request) = (claim.get("name").text(), claim.get("request"));
        if name.is_empty() {
            claim.required("");
            continue;
        }
        let duplicate = |shown: &str| claim.check().push(FieldError::duplicate(claim.path(), shown));
        if seen.contains(name) {
            duplicate(name);
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                dns_label(request);
                key = format!("{name}/{}", request.text());
            }
            if seen.contains(&key) {
                duplicate(&key);
            } else if request.is_empty() {
                let prefix = format!("{name}/");
                let parts = seen.range(prefix.clone()..).take_while(|one| one.starts_with(&prefix));
                parts.for_each(|_| duplicate(name));
            }
            seen.insert(key);
        }
        if !known.contains(name) && claim.check().is_full() {
            claim.check().push(FieldError::omitted(1));
        } else if !known.contains(name) {
            let mut detail = String::from("must be one of the names in pod.spec.resourceClaims");
            if known.is_empty() {
                detail.push_str(" which is empty");
            } else {
                detail.push_str(": ");
                detail.push_str(&known.iter().copied().collect::<Vec<_>>().join(", "));
            }
            claim.check().push(FieldError::new(
                ErrorKind::NotFound,
                claim.path(),
                Shown::Json(name.into()),
                detail,
            ));
        }
    }
}

/// `spec.resourceClaims`. Returns their names.
pub(crate) fn claims<'v>(list: At<'_, 'v>) -> BTreeSet<&'v str> {
    let mut seen = BTreeSet::new();
    for claim in list.items() {
        let name = claim.get("name");
        if name.is_empty() {
            name.required("");
        } else if !seen.insert(name.text()) {
            name.duplicate();
        } else {
            dns_label(name);
        }
        let (direct, template) = (claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName"));
        let shown = || {
            serde_json::json!({
                "Name": name.text(),
                "ResourceClaimName": direct.str(),
                "ResourceClaimTemplateName": template.str(),
            })
        };
        match (direct.is_set(), template.is_set()) {
            (true, true) => claim.invalid_as(
                shown(),
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
            (false, false) => claim
                .invalid_as(shown(), "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            _ => {}
        }
        for at in [direct, template] {
            if at.is_set() {
                invalid_each(at, names::is_dns1123_subdomain(at.text()));
            }
        }
    }
    seen
}

/// `spec.overhead`
pub(crate) fn overhead(at: At<'_, '_>) {
    let wrapper = serde_json::json!({"limits": at.value()});
    let check = k1s_object::Check::new();
    requirements(check.root(&wrapper), |at, name| container_resource_name(name, at), &BTreeSet::new());
    let path = at.path();
    for mut error in check.take() {
        error.field = match error.field.strip_prefix("limits") {
            Some(rest) => format!("{path}.limits{rest}"),
            None => path.clone(),
        };
        at.check().push(error);
    }
}

/// `spec.resources`, the pod-level resources.
pub(crate) fn pod_level(spec: At<'_, '_>) {
    let at = spec.get("resources");
    if !at.is_set() {
        return;
    }
    if spec.get("os").get("name").text() == "windows" {
        at.forbidden("may not be set for a windows pod");
        return;
    }
    if at.get("claims").is_set() {
        at.get("claims").forbidden("claims may not be set for Resources at pod-level");
    }
    requirements(at, pod_name, &BTreeSet::new());
    let Some(spec_value) = spec.value() else { return };
    for (name, needed) in aggregate(spec_value, "requests") {
        let own =
            at.get("requests").get("").with(at.get("requests").value().and_then(|list| list.get(&name)));
        if quantities::parse(own.text()).is_some_and(|own| needed > own) {
            let error = FieldError::invalid(
                format!("{}.requests[{name}]", at.path()),
                own.text(),
                format!("must be greater than or equal to aggregate container requests of {}", needed),
            );
            at.check().push(error);
        }
    }
    for container in spec.get("containers").items().enumerate() {
        let (index, container) = container;
        for (name, limit) in container.get("resources").get("limits").entries() {
            let own = at.get("limits").key(name);
            if let (Some(limit_amount), Some(most)) =
                (quantities::parse(limit.text()), quantities::parse(own.text()))
                && limit_amount > most
            {
                let error = FieldError::invalid(
                    format!("{}.containers[{index}][{name}].limits", at.path()),
                    limit.text(),
                    format!("must be less than or equal to pod limits of {}", own.text()),
                );
                at.check().push(error);
            }
        }
    }
}

/// The total of all containers: regular containers and sidecars run together, other init containers one by one.
fn aggregate(spec: &Value, list: &str) -> BTreeMap<String, Quantity> {
    let of = |container: &Value| -> Vec<(String, Quantity)> {
        let amounts = container.pointer("/resources").and_then(|resources| resources.get(list));
        let amounts = amounts.and_then(Value::as_object).into_iter().flatten();
        amounts
            .filter_map(|(name, amount)| Some((name.clone(), quantities::parse(amount.as_str()?)?)))
            .collect()
    };
    let items = |key: &str| spec.get(key).and_then(Value::as_array).into_iter().flatten();
    let mut total: BTreeMap<String, Quantity> = BTreeMap::new();
    let add = |total: &mut BTreeMap<String, Quantity>, amounts: Vec<(String, Quantity)>| {
        for (name, amount) in amounts {
            let sum = total.entry(name).or_insert_with(|| Quantity::from_i64(0));
            *sum = sum.add(&amount);
        }
    };
    for container in items("containers") {
        add(&mut total, of(container));
    }
    let mut sidecars: BTreeMap<String, Quantity> = BTreeMap::new();
    let mut highest: BTreeMap<String, Quantity> = BTreeMap::new();
    for container in items("initContainers") {
        let mut now = of(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut total, now.clone());
            add(&mut sidecars, now);
            now = sidecars.iter().map(|(name, amount)| (name.clone(), amount.clone())).collect();
        } else {
            for (name, amount) in &mut now {
                if let Some(beside) = sidecars.get(name) {
                    *amount = amount.add(beside);
                }
            }
        }
        for (name, amount) in now {
            raise(&mut highest, name, amount);
        }
    }
    for (name, amount) in highest {
        raise(&mut total, name, amount);
    }
    total
}

/// Raises an entry to at least this amount.
fn raise(amounts: &mut BTreeMap<String, Quantity>, name: String, amount: Quantity) {
    let most = amounts.entry(name).or_insert_with(|| amount.clone());
    if amount > *most {
        *most = amount;
    }
}

/// Derives missing pod-level resources from those of the containers and from the limits.
pub(crate) fn default_pod_level(pod: &mut Value) {
    let Some(spec) = pod.get("spec") else { return };
    let requests = aggregate(spec, "requests");
    let limits = aggregate(spec, "limits");
    let spec = child(object(pod), "spec");
    let Some(resources) = existing(spec, "resources") else { return };
    if zero(resources, "limits") && zero(resources, "requests") {
        return;
    }
    let requested = |resources: &serde_json::Map<String, Value>, name: &str| {
        resources.get("requests").is_some_and(|list| list.get(name).is_some())
    };
    for (name, amount) in &limits {
        if is_huge_page(name) && !requested(resources, name) {
            child(resources, "limits").entry(name.as_str()).or_insert_with(|| amount.to_string().into());
        }
    }
    for (name, amount) in &requests {
        if is_pod_level(name) && is_overcommit_allowed(name) {
            child(resources, "requests").entry(name.as_str()).or_insert_with(|| amount.to_string().into());
        }
    }
    let own = resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, limit) in own {
        if is_pod_level(&name) {
            child(resources, "requests").entry(name).or_insert(limit);
        }
    }
    default_limits(pod, &limits);
}

/// Derives a pod-level limit where the pod has a request and all containers have limits.
fn default_limits(pod: &mut Value, together: &BTreeMap<String, Quantity>) {
    let everywhere = |name: &str| {
        ["initContainers", "containers"].iter().all(|list| {
            let list = pod.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
            list.into_iter().flatten().all(|container| {
                container.pointer("/resources/limits").is_some_and(|limits| limits.get(name).is_some())
            })
        })
    };
    let requests = pod.pointer("/spec/resources/requests").and_then(Value::as_object);
    let mut limits = Vec::new();
    for (name, request) in requests.into_iter().flatten() {
        let known = pod.pointer("/spec/resources/limits").is_some_and(|limits| limits.get(name).is_some());
        if known || !is_pod_level(name) || !everywhere(name) {
            continue;
        }
        let (Some(most), Some(request)) = (together.get(name), request.as_str().and_then(quantities::parse))
        else {
            continue;
        };
        limits.push((name.clone(), request.max(most.clone()).to_string()));
    }
    if limits.is_empty() {
        return;
    }
    let resources = child(child(object(pod), "spec"), "resources");
    for (name, limit) in limits {
        child(resources, "limits").insert(name, limit.into());
    }
}
