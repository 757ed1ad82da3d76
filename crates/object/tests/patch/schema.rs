//! A few types of Kubernetes as schemas for strategic merge patch.

use k1s_object::patch::strategic::{FieldPatch, PatchSchema, Strategy};

/// The type of a whole object.
pub(crate) const OBJECT: Schema = Schema { ty: Ty::Struct("Object"), pointer: false };

#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema {
    ty: Ty,
    pointer: bool,
}

#[derive(Debug, Clone, Copy)]
enum Ty {
    Scalar,
    Struct(&'static str),
    Map,
    List(&'static Ty),
}

use Ty::{List, Map, Scalar, Struct};

impl PatchSchema for Schema {
    fn kind(self) -> &'static str {
        match self.ty {
            Scalar => "string",
            Struct(_) => "struct",
            Map => "map",
            List(_) => "slice",
        }
    }

    fn is_pointer(self) -> bool {
        self.pointer
    }

    fn type_name(self) -> &'static str {
        if let Struct(name) = self.ty { name } else { "" }
    }

    fn field(self, name: &str) -> Option<FieldPatch<Schema>> {
        let Struct(ty) = self.ty else { return None };
        let (field, strategy, merge_key) = match (ty, name) {
            ("Object", "metadata") => (Struct("ObjectMeta"), Strategy::Default, ""),
            ("Object", "data") => (Map, Strategy::Default, ""),
            ("Object", "spec") => (Struct("Spec"), Strategy::Default, ""),
            ("Object", "matrix") => (List(&List(&Scalar)), Strategy::Default, ""),
            ("ObjectMeta", "labels" | "annotations") => (Map, Strategy::Default, ""),
            ("ObjectMeta", "finalizers") => (List(&Scalar), Strategy::Merge, ""),
            ("Spec", "replicas") => (Scalar, Strategy::Default, ""),
            ("Spec", "strategy") => (Struct("Strategy"), Strategy::Default, ""),
            ("Strategy", "rollingUpdate") => (Struct("RollingUpdate"), Strategy::Default, ""),
            ("Spec", "selector") => (Struct("Selector"), Strategy::Replace, ""),
            ("Selector", "matchLabels") => (Map, Strategy::Default, ""),
            ("Spec", "containers") => (List(&Struct("Container")), Strategy::Merge, "name"),
            ("Spec", "volumes") => (List(&Struct("Volume")), Strategy::Merge, "name"),
            ("Spec", "ports") => (List(&Struct("Port")), Strategy::Merge, "port"),
            ("Spec", "tolerations") => (List(&Struct("Toleration")), Strategy::Default, ""),
            ("Spec", "odd") => (List(&Struct("Toleration")), Strategy::Merge, ""),
            ("Container", "env") => (List(&Struct("EnvVar")), Strategy::Merge, "name"),
            ("Container", "args") => (List(&Scalar), Strategy::Default, ""),
            (_, "name" | "image" | "value" | "type" | "port") => (Scalar, Strategy::Default, ""),
            _ => return None,
        };
        let pointer = matches!(name, "selector");
        Some(FieldPatch { schema: Schema { ty: field, pointer }, strategy, merge_key })
    }

    fn items(self) -> Option<Schema> {
        if let List(items) = self.ty { Some(Schema { ty: *items, pointer: false }) } else { None }
    }
}
