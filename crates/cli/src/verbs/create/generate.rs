//! `create deployment`, `create role` and the like: small objects from a few options, as kubectl makes them.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::{
    Common,
    ingress::{IngressArgs, ingress},
    rbac::{ClusterRoleArgs, ClusterRoleBindingArgs, RoleArgs, RoleBindingArgs},
};
use crate::api::{Error, discovery::Resources};

/// The kinds whose objects need more than a name and data.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum Generated {
    /// A `Deployment` of a pod with these images.
    #[command(visible_alias = "deploy")]
    Deployment(DeploymentArgs),
    /// A `Job` that runs an image once.
    Job(JobArgs),
    /// A `Service` for the pods with the label `app` of its name.
    #[command(visible_alias = "svc")]
    Service {
        #[command(subcommand)]
        kind: ServiceKind,
    },
    /// A `Role`: what may be done in a namespace.
    Role(RoleArgs),
    /// A `ClusterRole`: what may be done everywhere.
    #[command(name = "clusterrole")]
    ClusterRole(ClusterRoleArgs),
    /// A `RoleBinding`: who may do it in a namespace.
    #[command(name = "rolebinding")]
    RoleBinding(RoleBindingArgs),
    /// A `ClusterRoleBinding`: who may do it everywhere.
    #[command(name = "clusterrolebinding")]
    ClusterRoleBinding(ClusterRoleBindingArgs),
    /// A `ResourceQuota`.
    #[command(visible_alias = "resourcequota")]
    Quota(QuotaArgs),
    /// An `Ingress`.
    #[command(visible_alias = "ing")]
    Ingress(IngressArgs),
}

#[derive(Debug, Clone, Args)]
pub(super) struct DeploymentArgs {
    /// Its name.
    name: String,
    /// The image of a container; can be repeated.
    #[arg(long, value_name = "IMAGE", required = true, value_delimiter = ',')]
    image: Vec<String>,
    /// The number of replicas.
    #[arg(short, long, value_name = "NUMBER", default_value_t = 1)]
    replicas: i32,
    /// The port of the first container.
    #[arg(long, value_name = "PORT")]
    port: Option<i32>,
    /// What the container runs, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    common: Box<Common>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct JobArgs {
    /// Its name.
    name: String,
    /// The image of its container.
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// What the container runs, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    common: Box<Common>,
}

#[derive(Debug, Clone, Subcommand)]
pub(super) enum ServiceKind {
    /// With an address in the cluster.
    #[command(name = "clusterip")]
    ClusterIp {
        /// The address; `None` for a headless Service.
        #[arg(long, value_name = "ADDRESS")]
        clusterip: Option<String>,
        #[command(flatten)]
        service: ServiceArgs,
    },
    /// With a port of every node.
    #[command(name = "nodeport")]
    NodePort {
        /// The port of the nodes.
        #[arg(long, value_name = "PORT")]
        node_port: Option<i32>,
        #[command(flatten)]
        service: ServiceArgs,
    },
    /// With a load balancer.
    #[command(name = "loadbalancer")]
    LoadBalancer {
        #[command(flatten)]
        service: ServiceArgs,
    },
    /// Another name for a host elsewhere.
    #[command(name = "externalname")]
    ExternalName {
        /// The host.
        #[arg(long, value_name = "HOST")]
        external_name: String,
        #[command(flatten)]
        service: ServiceArgs,
    },
}

#[derive(Debug, Clone, Args)]
pub(super) struct ServiceArgs {
    /// Its name.
    name: String,
    /// A port, and that of the pods if it is another one; can be repeated.
    #[arg(long, value_name = "PORT[:TARGET]", value_delimiter = ',')]
    tcp: Vec<String>,
    #[command(flatten)]
    common: Box<Common>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct QuotaArgs {
    /// Its name.
    name: String,
    /// The limits: `cpu=1,memory=1G,pods=2`.
    #[arg(long, value_name = "RESOURCE=QUANTITY", value_delimiter = ',')]
    hard: Vec<String>,
    /// What is counted: `BestEffort,NotTerminating`.
    #[arg(long, value_name = "SCOPE", value_delimiter = ',')]
    scopes: Vec<String>,
    #[command(flatten)]
    common: Box<Common>,
}

impl Generated {
    pub(super) fn common(&self) -> &Common {
        match self {
            Generated::Deployment(args) => &args.common,
            Generated::Job(args) => &args.common,
            Generated::Service { kind } => &kind.service().common,
            Generated::Role(args) => &args.common,
            Generated::ClusterRole(args) => &args.common,
            Generated::RoleBinding(args) => &args.common,
            Generated::ClusterRoleBinding(args) => &args.common,
            Generated::Quota(args) => &args.common,
            Generated::Ingress(args) => &args.common,
        }
    }

    /// The object. `suffix`: something random, for names that could otherwise be taken.
    pub(super) fn object(&self, resources: &Resources, suffix: &str) -> Result<Value, Error> {
        match self {
            Generated::Deployment(args) => deployment(args, suffix),
            Generated::Job(args) => Ok(job(args)),
            Generated::Service { kind } => service(kind),
            Generated::Role(args) => args.object(resources),
            Generated::ClusterRole(args) => args.object(resources),
            Generated::RoleBinding(args) => args.object(),
            Generated::ClusterRoleBinding(args) => args.object(),
            Generated::Quota(args) => quota(args),
            Generated::Ingress(args) => ingress(args),
        }
    }
}

impl ServiceKind {
    fn service(&self) -> &ServiceArgs {
        match self {
            ServiceKind::ClusterIp { service, .. }
            | ServiceKind::NodePort { service, .. }
            | ServiceKind::LoadBalancer { service }
            | ServiceKind::ExternalName { service, .. } => service,
        }
    }
}

fn deployment(args: &DeploymentArgs, suffix: &str) -> Result<Value, Error> {
    if args.replicas < 0 {
        return Err(Error::failed("--replicas must not be negative"));
    }
    if args.image.len() > 1 && !args.command.is_empty() {
        return Err(Error::failed("cannot specify multiple --image options and command"));
    }
    let containers = args.image.iter().map(|image| {
        let mut container = container(&container_name(image, suffix), image, &args.command);
        if let Some(port) = args.port.filter(|_| Some(image) == args.image.first()) {
            container["ports"] = json!([{"containerPort": port}]);
        }
        container
    });
    let labels = json!({"app": args.name});
    Ok(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": args.name, "labels": labels},
        "spec": {
            "replicas": args.replicas,
            "selector": {"matchLabels": labels},
            "strategy": {},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers.collect::<Vec<_>>()}},
        },
        "status": {},
    }))
}

/// The image without registry and tag, as a DNS label.
fn container_name(image: &str, suffix: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    let name = name.split([':', '@']).next().unwrap_or(name);
    if name.contains(['_', '.']) {
        format!("{}-{suffix}", name.replace(['_', '.'], "-"))
    } else {
        name.to_owned()
    }
}

fn container(name: &str, image: &str, command: &[String]) -> Value {
    let mut container = json!({"name": name, "image": image, "resources": {}});
    if !command.is_empty() {
        container["command"] = json!(command);
    }
    container
}

fn job(args: &JobArgs) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": args.name},
        "spec": {"template": {"metadata": {}, "spec": {
            "containers": [container(&args.name, &args.image, &args.command)], "restartPolicy": "Never",
        }}},
        "status": {},
    })
}

fn service(kind: &ServiceKind) -> Result<Value, Error> {
    let ServiceArgs { name, tcp, .. } = kind.service();
    let type_ = match kind {
        ServiceKind::ClusterIp { .. } => "ClusterIP",
        ServiceKind::NodePort { .. } => "NodePort",
        ServiceKind::LoadBalancer { .. } => "LoadBalancer",
        ServiceKind::ExternalName { .. } => "ExternalName",
    };
    let mut spec = json!({"type": type_, "selector": {"app": name}});
    let mut needs_port = true;
    let mut ports = tcp.iter().map(|text| port(text)).collect::<Result<Vec<Value>, Error>>()?;
    match kind {
        ServiceKind::ClusterIp { clusterip: Some(address), .. } => {
            needs_port = address != "None";
            spec["clusterIP"] = address.as_str().into();
        }
        ServiceKind::NodePort { node_port: Some(node_port), .. } => {
            for port in &mut ports {
                port["nodePort"] = (*node_port).into();
            }
        }
        ServiceKind::ExternalName { external_name, .. } => {
            needs_port = false;
            spec["externalName"] = external_name.as_str().into();
        }
        _ => {}
    }
    if ports.is_empty() && needs_port {
        return Err(Error::failed("at least one tcp port specifier must be provided"));
    }
    if !ports.is_empty() {
        spec["ports"] = ports.into();
    }
    Ok(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"app": name}},
        "spec": spec, "status": {"loadBalancer": {}},
    }))
}

/// `80`, `80:8080` or `80:http`
fn port(text: &str) -> Result<Value, Error> {
    let wrong = || Error::failed(format!("--tcp {text}: write it as PORT or PORT:TARGET, like 80:8080"));
    let (own, target) = text.split_once(':').unwrap_or((text, text));
    let own: u16 = own.parse().map_err(|_| wrong())?;
    let target: Value = match target.parse::<u16>() {
        Ok(number) => number.into(),
        Err(_) if target.is_empty() || target.contains(':') => return Err(wrong()),
        Err(_) => target.into(),
    };
    Ok(json!({"name": text.replace(':', "-"), "port": own, "protocol": "TCP", "targetPort": target}))
}

/// `key=value`, several times.
pub(super) fn pairs<'t>(
    texts: impl Iterator<Item = &'t str>,
    what: &str,
) -> Result<Map<String, Value>, Error> {
    let pair = |text: &str| {
        let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            Error::failed(format!("{what} {text} is invalid and should be in format key=[value]"))
        })?;
        Ok((key.to_owned(), value.into()))
    };
    texts.map(pair).collect()
}

fn quota(args: &QuotaArgs) -> Result<Value, Error> {
    let mut spec = Map::new();
    if !args.hard.is_empty() {
        let mut hard = Map::new();
        for text in &args.hard {
            let (name, quantity) = text.split_once('=').ok_or_else(|| {
                Error::failed(format!("Invalid argument syntax {text}, expected <resource>=<value>"))
            })?;
            hard.insert(name.to_owned(), quantity.into());
        }
        spec.insert("hard".to_owned(), hard.into());
    }
    if args.scopes.iter().any(String::is_empty) {
        return Err(Error::failed("invalid resource quota scope \"\""));
    }
    if !args.scopes.is_empty() {
        spec.insert("scopes".to_owned(), json!(args.scopes));
    }
    Ok(json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": args.name}, "spec": spec, "status": {},
    }))
}
