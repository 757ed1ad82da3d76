//! What expressions of admission may name, and the types of it.

use std::sync::LazyLock;

use k1s_cel::{
    DeclType, Env, EnvBuilder, Field, ListType, ObjectType, Type,
    library::{authz, json_patch_functions},
};

/// What expressions may name besides `object`, `oldObject`, `request` and `namespaceObject`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope {
    /// `params`.
    pub params: bool,
    /// `authorizer`.
    pub authorizer: bool,
    /// The types `Object…` and `JSONPatch` of mutations.
    pub patches: bool,
}

/// The environment without the variables of a policy.
pub(super) fn environment(scope: Scope) -> &'static Env {
    // The combinations are few and their contents never change.
    static ALL: LazyLock<[Env; 8]> = LazyLock::new(|| {
        std::array::from_fn(|bits| {
            build(Scope { params: bits & 1 != 0, authorizer: bits & 2 != 0, patches: bits & 4 != 0 })
        })
    });
    let [none, params, authorizer, both, patches, patches_params, patches_authorizer, all] = &*ALL;
    match (scope.patches, scope.authorizer, scope.params) {
        (false, false, false) => none,
        (false, false, true) => params,
        (false, true, false) => authorizer,
        (false, true, true) => both,
        (true, false, false) => patches,
        (true, false, true) => patches_params,
        (true, true, false) => patches_authorizer,
        (true, true, true) => all,
    }
}

/// What objects are to a check of types: `object` and `oldObject`, and `params` if there are any. Expressions of other scopes are
/// not checked against types, so all may use `authorizer`.
pub(super) fn typed(object: &Type, params: Option<&Type>) -> Env {
    let mut builder = with_objects(object).variable("authorizer", authz::types()[0].clone());
    if let Some(params) = params {
        builder = builder.variable("params", params.clone());
    }
    builder.build()
}

fn with_objects(object: &Type) -> EnvBuilder {
    Env::kubernetes()
        .extend()
        .variable("object", object.clone())
        .variable("oldObject", object.clone())
        .variable("namespaceObject", namespace().cel().clone())
        .variable("request", request().cel().clone())
}

fn build(scope: Scope) -> Env {
    let mut builder = with_objects(&Type::Dyn);
    if scope.params {
        builder = builder.variable("params", Type::Dyn);
    }
    if scope.authorizer {
        let [authorizer, request_resource] = authz::types();
        builder = builder
            .variable("authorizer", authorizer)
            .variable("authorizer.requestResource", request_resource);
    }
    if scope.patches {
        builder = builder.mutation_types().functions(json_patch_functions());
    }
    builder.build()
}

fn field(name: &str, decl: DeclType) -> Field {
    Field { name: name.into(), json: name.into(), decl }
}

/// An object type with these fields.
pub(super) fn object(name: &str, fields: &[(&str, &DeclType)]) -> DeclType {
    let fields = fields.iter().map(|(name, decl)| field(name, (*decl).clone())).collect();
    DeclType::object(ObjectType::new(name, fields), 2)
}

pub(super) fn strings() -> DeclType {
    DeclType::list(DeclType::string(u64::MAX), u64::MAX, ListType::Atomic)
}

/// `AdmissionRequest` without the objects, which are variables of their own.
fn request() -> DeclType {
    let (text, bool) = (&DeclType::string(u64::MAX), &DeclType::bool());
    let kind = &object("kubernetes.GroupVersionKind", &[("group", text), ("version", text), ("kind", text)]);
    let resource =
        &object("kubernetes.GroupVersionResource", &[("group", text), ("version", text), ("resource", text)]);
    let user = &object(
        "kubernetes.UserInfo",
        &[
            ("username", text),
            ("uid", text),
            ("groups", &strings()),
            ("extra", &DeclType::map(strings(), u64::MAX)),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        &[
            ("kind", kind),
            ("resource", resource),
            ("subResource", text),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", text),
            ("name", text),
            ("namespace", text),
            ("operation", text),
            ("userInfo", user),
            ("dryRun", bool),
            ("options", &DeclType::dynamic()),
        ],
    )
}

/// The parts of a Namespace that expressions may use.
fn namespace() -> DeclType {
    let (text, time, int) = (&DeclType::string(u64::MAX), &DeclType::date_time(), &DeclType::int());
    let texts = &DeclType::map(text.clone(), u64::MAX);
    let condition = object(
        "kubernetes.NamespaceCondition",
        &[
            ("status", text),
            ("type", text),
            ("lastTransitionTime", time),
            ("message", text),
            ("reason", text),
        ],
    );
    let metadata = &object(
        "kubernetes.NamespaceMetadata",
        &[
            ("name", text),
            ("generateName", text),
            ("namespace", text),
            ("labels", texts),
            ("annotations", texts),
            // The name upstream has declared, although objects have `uid`.
            ("UID", text),
            ("creationTimestamp", time),
            ("deletionGracePeriodSeconds", int),
            ("deletionTimestamp", time),
            ("generation", int),
            ("resourceVersion", text),
            ("finalizers", &strings()),
        ],
    );
    let spec = &object("kubernetes.NamespaceSpec", &[("finalizers", &strings())]);
    let conditions = &DeclType::list(condition, u64::MAX, ListType::Atomic);
    let status = &object("kubernetes.NamespaceStatus", &[("conditions", conditions), ("phase", text)]);
    object("kubernetes.Namespace", &[("metadata", metadata), ("spec", spec), ("status", status)])
}
