//! The TCP connections of this process, as `/proc` has them.

use std::collections::HashSet;

use crate::Failure;

/// The state of an established connection in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";

/// Established connections of this process to a port.
pub(super) fn connections_to(port: u16) -> Result<usize, Failure> {
    let mut own = HashSet::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        // The descriptor of this folder is gone when it is looked at.
        let Ok(target) = std::fs::read_link(entry?.path()) else { continue };
        let target = target.to_string_lossy();
        if let Some(inode) = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) {
            own.insert(inode.to_owned());
        }
    }
    let mut found = 0;
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        // A machine without IPv6 has no such table.
        let Ok(table) = std::fs::read_to_string(table) else { continue };
        found +=
            table.lines().filter_map(|line| line_to(line, port)).filter(|inode| own.contains(*inode)).count();
    }
    Ok(found)
}

/// The inode of a connection to a port.
fn line_to(line: &str, port: u16) -> Option<&str> {
    let mut fields = line.split_whitespace();
    let remote = fields.nth(2)?.rsplit_once(':')?.1;
    let state = fields.next()?;
    let is_to = u16::from_str_radix(remote, 16).ok()? == port;
    if is_to && state == ESTABLISHED { fields.nth(5) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_established_connection_to_the_port_is_found() {
        let line = |remote: &str, state: &str| {
            format!(
                "   1: 0100007F:B3A2 0100007F:{remote} {state} 00000000:00000000 02:000A 00000000     0        0 4711 2 0"
            )
        };
        assert_eq!(line_to(&line("192B", "01"), 6443), Some("4711"));
        assert_eq!(line_to(&line("192B", "06"), 6443), None);
        assert_eq!(line_to(&line("192C", "01"), 6443), None);
    }
}
