//! The Service `default/kubernetes` of each tenant: as in kube-apiserver, its port, its Endpoints and its `EndpointSlice` follow
//! the advertised address. Without an address the Service has the default port and no endpoints.

use std::{net::SocketAddr, sync::Arc};

use k1s_object::gvk::GroupVersionResource;
use k1s_store::{Error as StoreError, Precondition, Txn};
use serde_json::{Value, json};

use crate::{
    errors::{self, Error},
    managed,
    tenant::Tenant,
};

const SERVICES: GroupVersionResource<&str> = GroupVersionResource::new("", "v1", "services");
const ENDPOINTS: GroupVersionResource<&str> = GroupVersionResource::new("", "v1", "endpoints");
const ENDPOINT_SLICES: GroupVersionResource<&str> =
    GroupVersionResource::new("discovery.k8s.io", "v1", "endpointslices");

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";
/// Maximum attempts to write one of the objects while other servers write it as well; then 409.
const ATTEMPTS: usize = 100;
/// The target port of the Service if no address is advertised.
const DEFAULT_PORT: u16 = 6443;

/// The target port of the Service.
pub(crate) fn target_port(tenant: &Tenant) -> u16 {
    tenant.options().advertise_address.map_or(DEFAULT_PORT, |address| address.port())
}

/// Points all three objects to this server. Several servers over one store replace each other: the last one to open a tenant
/// wins.
pub(crate) async fn reconcile(tenant: &Arc<Tenant>) -> Result<(), Error> {
    let Some(address) = tenant.options().advertise_address else { return Ok(()) };
    let port = address.port();
    let service = |object: &mut Value| {
        if let Some(first) = object["spec"]["ports"].get_mut(0) {
            first["targetPort"] = port.into();
        }
    };
    put(tenant, SERVICES, None, &service).await?;
    let (endpoints, slice) = objects(address);
    let set = |from: &Value, fields: &[&str], to: &mut Value| {
        for field in fields {
            to[*field] = from[*field].clone();
        }
    };
    let as_endpoints = |object: &mut Value| set(&endpoints, &["subsets"], object);
    put(tenant, ENDPOINTS, Some(&endpoints), &as_endpoints).await?;
    let as_slice = |object: &mut Value| set(&slice, &["addressType", "endpoints", "ports"], object);
    put(tenant, ENDPOINT_SLICES, Some(&slice), &as_slice).await
}

/// The Endpoints and the `EndpointSlice` of an address.
fn objects(address: SocketAddr) -> (Value, Value) {
    let (ip, kind) = (address.ip().to_string(), if address.is_ipv6() { "IPv6" } else { "IPv4" });
    let ports = json!([{"name": "https", "port": address.port(), "protocol": "TCP"}]);
    let metadata =
        |label: &str, value: &str| json!({"name": NAME, "namespace": NAMESPACE, "labels": {label: value}});
    let endpoints = json!({
        "metadata": metadata("endpointslice.kubernetes.io/skip-mirror", "true"),
        "subsets": [{"addresses": [{"ip": ip}], "ports": ports}],
    });
    let slice = json!({
        "metadata": metadata("kubernetes.io/service-name", NAME),
        "addressType": kind,
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
        "ports": ports,
    });
    (endpoints, slice)
}

/// Changes an object, or creates it as `new`. Bypasses the validation of requests, which rejects loopback addresses: a server
/// may well listen on one.
async fn put(
    tenant: &Arc<Tenant>,
    gvr: GroupVersionResource<&str>,
    new: Option<&Value>,
    change: &(dyn Fn(&mut Value) + Sync),
) -> Result<(), Error> {
    let resource = tenant.shared.catalog.require(gvr)?;
    let key = tenant.key(&resource, NAMESPACE, NAME);
    for _ in 0..ATTEMPTS {
        let written = match (tenant.get(&key).await?, new) {
            (Some(stored), _) => {
                let old = resource.read(&stored).map_err(|why| resource.unreadable(NAME, &why))?;
                let mut object = old.clone();
                change(&mut object);
                resource.finish(&mut object);
                if object == old {
                    return Ok(());
                }
                tenant.update(key.clone(), resource.encode(&object)?, stored.revision).await
            }
            (None, Some(new)) => {
                let mut new = new.clone();
                managed::on_own_create(&resource, tenant.env(), managed::SERVER, &mut new);
                let value = resource.encode_new(tenant.env(), new)?;
                tenant.txn(Txn::new().put(key.clone(), value, Precondition::Absent)).await
            }
            (None, None) => return Ok(()),
        };
        match written {
            Ok(_) => return Ok(()),
            Err(StoreError::Conflict(_)) => {}
            Err(error) => return Err(tenant.refusal(error)),
        }
    }
    Err(errors::modified(&resource.group, &resource.plural, NAME).into())
}
