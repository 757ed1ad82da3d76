//! The operators' kind: a custom resource with a status, of some 500 bytes.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use k1s_env::Env;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, CustomResource, CustomResourceExt as _,
    api::{ObjectMeta, PostParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Failure, server::objects};

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "runtime.bench.k1s.dev", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
#[serde(rename_all = "camelCase")]
pub(crate) struct WidgetSpec {
    pub(crate) size: i64,
    pub(crate) image: String,
    pub(crate) hosts: Vec<String>,
    pub(crate) settings: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, JsonSchema)]
pub(crate) struct WidgetStatus {
    pub(crate) observed: i64,
}

pub(crate) const NAMESPACE: &str = "default";
/// The widget whose latency from a write to a reconcile is measured.
pub(crate) const TIMED: &str = "timed";

/// The name of a widget.
pub(crate) fn name(number: u64) -> String {
    objects::name("widget", number)
}

pub(crate) fn widget(name: &str) -> Widget {
    let spec = WidgetSpec {
        size: 1,
        image: "registry.example/team/app:v1.2.3".to_owned(),
        hosts: vec!["a.example".to_owned(), "b.example".to_owned()],
        settings: (0..8).map(|number| (format!("setting-{number}"), "on".to_owned())).collect(),
    };
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(NAMESPACE.to_owned()),
        ..ObjectMeta::default()
    };
    Widget { metadata, spec, status: None }
}

/// Defines widgets and waits until they are served.
pub(crate) async fn define(env: &Env, client: &kube::Client) -> Result<(), Failure> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &Widget::crd()).await?;
    let widgets: Api<Widget> = Api::namespaced(client.clone(), NAMESPACE);
    for _ in 0..1000 {
        if widgets.list_metadata(&kube::api::ListParams::default().limit(1)).await.is_ok() {
            return Ok(());
        }
        env.sleep(Duration::from_millis(5)).await;
    }
    Err(Failure("widgets are not served".to_owned()))
}

/// Defines widgets and creates `count` of them, and the one that is timed.
pub(crate) async fn fill(env: &Env, client: &kube::Client, count: u64) -> Result<(), Failure> {
    define(env, client).await?;
    let widgets: Api<Widget> = Api::namespaced(client.clone(), NAMESPACE);
    let names = (0..count).map(name).chain([TIMED.to_owned()]);
    let made = stream::iter(names).map(|name| {
        let widgets = widgets.clone();
        async move { widgets.create(&PostParams::default(), &widget(&name)).await.map(drop) }
    });
    Ok(made.buffer_unordered(32).try_collect::<Vec<()>>().await.map(drop)?)
}
