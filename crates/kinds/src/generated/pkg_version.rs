//! The types of `k8s.io/apimachinery/pkg/version`. Written by `cargo xtask gen`: do not edit.

use super::{F};
use crate::table::{Field, Omit, Type};

pub(crate) static INFO: Type = Type { name: "io.k8s.apimachinery.pkg.version.Info", go: "version.Info", atomic: false, fields: &[
    Field { name: "buildDate", required: true, omit: Omit::Never, ..F },
    Field { name: "compiler", required: true, omit: Omit::Never, ..F },
    Field { name: "emulationMajor", ..F },
    Field { name: "emulationMinor", ..F },
    Field { name: "gitCommit", required: true, omit: Omit::Never, ..F },
    Field { name: "gitTreeState", required: true, omit: Omit::Never, ..F },
    Field { name: "gitVersion", required: true, omit: Omit::Never, ..F },
    Field { name: "goVersion", required: true, omit: Omit::Never, ..F },
    Field { name: "major", required: true, omit: Omit::Never, ..F },
    Field { name: "minCompatibilityMajor", ..F },
    Field { name: "minCompatibilityMinor", ..F },
    Field { name: "minor", required: true, omit: Omit::Never, ..F },
    Field { name: "platform", required: true, omit: Omit::Never, ..F },
] };
