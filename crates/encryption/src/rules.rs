//! Which providers write and read the value of a key.

use std::{collections::HashMap, sync::Arc};

use crate::{
    ConfigError,
    config::Configuration,
    providers::{Kind, Plugins, Providers},
    resource::GroupResource,
};

/// The keys of the server itself, which hold its certificate authority and its signing key.
const SERVER: &[u8] = b"/_k1s/";

/// The group of marks in the keys of a tenant. They hold nothing that is worth encrypting, and are read by every server.
const MARKS: &[u8] = b"k1s";

/// The providers of every resource that is configured.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// By `group/resource`, as they are in keys; a resource may be `*`.
    by_place: HashMap<Box<[u8]>, Arc<Providers>>,
    any: Option<Arc<Providers>>,
    /// Of Secrets, for the server's own keys.
    secrets: Option<Arc<Providers>>,
}

impl Rules {
    /// Makes the providers of a configuration. `plugins` connects those of key management services.
    pub(crate) fn new(configuration: &Configuration, plugins: &Plugins) -> Result<Rules, ConfigError> {
        let mut made: Vec<(GroupResource<'_>, Vec<Kind>)> = Vec::new();
        for one in &configuration.resources {
            let kinds: Vec<Kind> = one
                .providers
                .iter()
                .map(|provider| Kind::new(provider, plugins))
                .collect::<Result<_, _>>()?;
            for name in &one.resources {
                let at = GroupResource::parse(name);
                let wildcards = [
                    GroupResource { group: at.group, resource: "*" },
                    GroupResource { group: "*", resource: "*" },
                ];
                for wildcard in wildcards {
                    if made.iter().any(|(earlier, _)| *earlier == wildcard) {
                        return Err(ConfigError::Build(format!(
                            "resource {:?} is masked by earlier rule {:?}",
                            at.shown(),
                            wildcard.shown()
                        )));
                    }
                }
                // Of a resource in several lists, all providers read, and the very first one writes.
                match made.iter_mut().find(|(earlier, _)| *earlier == at) {
                    Some((_, earlier)) => earlier.extend(kinds.iter().cloned()),
                    None => made.push((at, kinds.clone())),
                }
            }
        }
        let mut rules = Rules::default();
        for (at, kinds) in made {
            let providers = Arc::new(Providers::new(kinds));
            if at.is_everything() {
                rules.any = Some(providers);
            } else {
                rules.by_place.insert(at.place().into_bytes().into(), providers);
            }
        }
        rules.secrets = rules.of_place(b"core/secrets", b"core").cloned();
        Ok(rules)
    }

    /// The providers for a key; `None` if nothing is configured for it.
    pub(crate) fn of(&self, key: &[u8]) -> Option<&Arc<Providers>> {
        if key.starts_with(SERVER) {
            return self.secrets.as_ref();
        }
        // `/tenant/group/resource/…`
        let rest = key.get(1..)?;
        let rest = rest.get(rest.iter().position(|byte| *byte == b'/')? + 1..)?;
        let group = rest.get(..rest.iter().position(|byte| *byte == b'/')?)?;
        if group == MARKS {
            return None;
        }
        let after = rest.get(group.len() + 1..)?;
        let resource = after.iter().position(|byte| *byte == b'/')?;
        self.of_place(rest.get(..group.len() + 1 + resource)?, group)
    }

    fn of_place(&self, place: &[u8], group: &[u8]) -> Option<&Arc<Providers>> {
        if let Some(found) = self.by_place.get(place) {
            return Some(found);
        }
        if !self.by_place.is_empty() {
            // Group names have 253 bytes at most.
            let mut wildcard = [0_u8; 256];
            let length = group.len() + 2;
            if let Some(place) = wildcard.get_mut(..length) {
                place[..group.len()].copy_from_slice(group);
                place[group.len()..].copy_from_slice(b"/*");
                if let Some(found) = self.by_place.get(&*place) {
                    return Some(found);
                }
            }
        }
        self.any.as_ref()
    }
}

/// Whether a key is one of the server itself, whose value has to be readable.
pub(crate) fn is_of_server(key: &[u8]) -> bool {
    key.starts_with(SERVER)
}
