//! The admission plugins by their names in Kubernetes, and which of them are enabled. What they do is in `admission`.

/// An entry of the chain, by its name in Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plugin {
    NamespaceLifecycle,
    LimitRanger,
    ServiceAccount,
    NodeRestriction,
    PodSecurity,
    Priority,
    DefaultTolerationSeconds,
    DefaultStorageClass,
    OwnerReferencesPermissionEnforcement,
    PersistentVolumeClaimResize,
    RuntimeClass,
    CertificateApproval,
    CertificateSigning,
    ClusterTrustBundleAttest,
    CertificateSubjectRestriction,
    DefaultIngressClass,
    MutatingAdmissionPolicy,
    MutatingAdmissionWebhook,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionWebhook,
    ResourceQuota,
}

impl Plugin {
    /// All, in Kubernetes' order.
    const ALL: [Plugin; 21] = [
        Plugin::NamespaceLifecycle,
        Plugin::LimitRanger,
        Plugin::ServiceAccount,
        Plugin::NodeRestriction,
        Plugin::PodSecurity,
        Plugin::Priority,
        Plugin::DefaultTolerationSeconds,
        Plugin::DefaultStorageClass,
        Plugin::OwnerReferencesPermissionEnforcement,
        Plugin::PersistentVolumeClaimResize,
        Plugin::RuntimeClass,
        Plugin::CertificateApproval,
        Plugin::CertificateSigning,
        Plugin::ClusterTrustBundleAttest,
        Plugin::CertificateSubjectRestriction,
        Plugin::DefaultIngressClass,
        Plugin::MutatingAdmissionPolicy,
        Plugin::MutatingAdmissionWebhook,
        Plugin::ValidatingAdmissionPolicy,
        Plugin::ValidatingAdmissionWebhook,
        Plugin::ResourceQuota,
    ];

    /// Its name in options and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Plugin::NamespaceLifecycle => "NamespaceLifecycle",
            Plugin::LimitRanger => "LimitRanger",
            Plugin::ServiceAccount => "ServiceAccount",
            Plugin::NodeRestriction => "NodeRestriction",
            Plugin::PodSecurity => "PodSecurity",
            Plugin::Priority => "Priority",
            Plugin::DefaultTolerationSeconds => "DefaultTolerationSeconds",
            Plugin::DefaultStorageClass => "DefaultStorageClass",
            Plugin::OwnerReferencesPermissionEnforcement => "OwnerReferencesPermissionEnforcement",
            Plugin::PersistentVolumeClaimResize => "PersistentVolumeClaimResize",
            Plugin::RuntimeClass => "RuntimeClass",
            Plugin::CertificateApproval => "CertificateApproval",
            Plugin::CertificateSigning => "CertificateSigning",
            Plugin::ClusterTrustBundleAttest => "ClusterTrustBundleAttest",
            Plugin::CertificateSubjectRestriction => "CertificateSubjectRestriction",
            Plugin::DefaultIngressClass => "DefaultIngressClass",
            Plugin::MutatingAdmissionPolicy => "MutatingAdmissionPolicy",
            Plugin::MutatingAdmissionWebhook => "MutatingAdmissionWebhook",
            Plugin::ValidatingAdmissionPolicy => "ValidatingAdmissionPolicy",
            Plugin::ValidatingAdmissionWebhook => "ValidatingAdmissionWebhook",
            Plugin::ResourceQuota => "ResourceQuota",
        }
    }

    fn of(name: &str) -> Option<Plugin> {
        Plugin::ALL.into_iter().find(|plugin| plugin.name() == name)
    }

    fn is_on_by_default(self) -> bool {
        !matches!(
            self,
            Plugin::ServiceAccount | Plugin::NodeRestriction | Plugin::OwnerReferencesPermissionEnforcement
        )
    }
}

/// Which admission plugins are enabled, by their names in Kubernetes. By default, those that kube-apiserver enables, without
/// `ServiceAccount`: no node runs pods that could use a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionPlugins {
    /// A bit for each plugin.
    bits: u64,
}

/// Why a list of plugins is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// Kubernetes has no plugin of this name.
    #[error("{flag} plugin {name:?} is unknown")]
    Unknown {
        /// The flag with the list.
        flag: &'static str,
        /// The name.
        name: String,
    },
    /// Plugins are both enabled and disabled.
    #[error("[{}] in enable-admission-plugins and disable-admission-plugins overlapped", .0.join(" "))]
    Overlap(Vec<String>),
    /// What this plugin does is not a plugin here.
    #[error("disable-admission-plugins plugin {0:?} cannot be disabled: k1s always does what it does")]
    Always(String),
    /// Kubernetes has this plugin, and k1s has not.
    #[error("enable-admission-plugins plugin {0:?} is not implemented by k1s")]
    NotImplemented(String),
}

/// The plugins of Kubernetes that are not implemented here. Of those that it enables, most belong to alpha features.
const ABSENT: [&str; 16] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NodeDeclaredFeatureValidator",
    "PodGroupProtection",
    "PodNodeSelector",
    "PodResizeValidator",
    "PodTolerationRestriction",
    "PodTopologyLabels",
];

/// What kube-apiserver has as plugins and enables, and the rules of the kinds do here, always.
const ALWAYS: [&str; 2] = ["StorageObjectInUseProtection", "TaintNodesByCondition"];

impl Default for AdmissionPlugins {
    fn default() -> AdmissionPlugins {
        let mut plugins = AdmissionPlugins { bits: 0 };
        for plugin in Plugin::ALL {
            plugins.set(plugin, plugin.is_on_by_default());
        }
        plugins
    }
}

impl AdmissionPlugins {
    /// The default plugins, with and without some.
    ///
    /// # Errors
    /// In the words of kube-apiserver, for names that are unknown or in both lists; for plugins that are not implemented.
    pub fn with(enable: &[String], disable: &[String]) -> Result<AdmissionPlugins, PluginError> {
        let mut plugins = AdmissionPlugins::default();
        for (flag, names) in [("enable-admission-plugins", enable), ("disable-admission-plugins", disable)] {
            let is_known = |name: &&String| {
                Plugin::of(name).is_some()
                    || ABSENT.contains(&name.as_str())
                    || ALWAYS.contains(&name.as_str())
            };
            if let Some(name) = names.iter().find(|name| !is_known(name)) {
                return Err(PluginError::Unknown { flag, name: name.clone() });
            }
        }
        let mut both: Vec<String> = enable.iter().filter(|name| disable.contains(name)).cloned().collect();
        if !both.is_empty() {
            both.sort_unstable();
            both.dedup();
            return Err(PluginError::Overlap(both));
        }
        if let Some(name) = enable.iter().find(|name| ABSENT.contains(&name.as_str())) {
            return Err(PluginError::NotImplemented(name.clone()));
        }
        if let Some(name) = disable.iter().find(|name| ALWAYS.contains(&name.as_str())) {
            return Err(PluginError::Always(name.clone()));
        }
        for (names, on) in [(enable, true), (disable, false)] {
            for plugin in names.iter().filter_map(|name| Plugin::of(name)) {
                plugins.set(plugin, on);
            }
        }
        Ok(plugins)
    }

    /// The names of the plugins that are enabled, in the order of the chain.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        Plugin::ALL.into_iter().filter(|plugin| self.has(*plugin)).map(Plugin::name)
    }

    pub(crate) fn has(&self, plugin: Plugin) -> bool {
        self.bits & (1 << plugin as u32) != 0
    }

    fn set(&mut self, plugin: Plugin, on: bool) {
        let bit = 1 << plugin as u32;
        self.bits = if on { self.bits | bit } else { self.bits & !bit };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn plugins_are_chosen_as_for_kube_apiserver() {
        let default = AdmissionPlugins::default();
        assert!(!default.names().any(|name| name == "ServiceAccount" || name == "NodeRestriction"));
        assert!(default.names().any(|name| name == "CertificateApproval"));
        let changed = AdmissionPlugins::with(
            &names(&["NodeRestriction", "LimitRanger"]),
            &names(&["PodSecurity", "AlwaysPullImages"]),
        );
        let changed: Vec<&str> = changed.unwrap().names().collect();
        assert!(changed.contains(&"NodeRestriction") && !changed.contains(&"PodSecurity"));
        assert_eq!(changed.len(), default.names().count());
        let why = |enable: &[&str], disable: &[&str]| {
            AdmissionPlugins::with(&names(enable), &names(disable)).unwrap_err().to_string()
        };
        assert_eq!(why(&["Foo"], &[]), "enable-admission-plugins plugin \"Foo\" is unknown");
        assert_eq!(why(&[], &["Foo"]), "disable-admission-plugins plugin \"Foo\" is unknown");
        assert_eq!(
            why(&["Priority", "LimitRanger"], &["LimitRanger", "Priority"]),
            "[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped"
        );
        assert_eq!(
            why(&[], &["TaintNodesByCondition"]),
            "disable-admission-plugins plugin \"TaintNodesByCondition\" cannot be disabled: k1s always does what it does"
        );
        assert_eq!(
            why(&["ImagePolicyWebhook"], &[]),
            "enable-admission-plugins plugin \"ImagePolicyWebhook\" is not implemented by k1s"
        );
    }
}
