//! A trace that nothing shakes off by itself: a resource limit, which every descendant inherits through `exec`, an
//! emptied environment, a session of its own and the death of its parents.
//!
//! The limit of file locks is one that Linux has kept and not enforced since 2.4.25, so its value is free. A hard limit
//! can be lowered by everybody and raised only with `CAP_SYS_RESOURCE`, as root: the other traces stay.

/// The limit's value in the daemon and below it.
const BRAND: u64 = 0x4845_524d;

/// Gives the own process the brand. Descendants have it from then on; this process is known by its id.
///
/// # Errors
/// What the system said: where the limit stands lower already, it cannot be raised.
#[cfg(target_os = "linux")]
pub fn brand() -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    Ok(setrlimit(Resource::Locks, Rlimit { current: Some(BRAND), maximum: Some(BRAND) })?)
}

/// There is no such limit here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn brand() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Whether a listing of limits (`/proc/PID/limits`) has the brand.
pub(super) fn is_branded(limits: &str) -> bool {
    let brand = BRAND.to_string();
    limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks"))
        .is_some_and(|rest| rest.split_ascii_whitespace().any(|word| word == brand))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brand_is_read_from_a_listing() {
        let line = |soft: &str, hard: &str| {
            format!(
                "Max address space  unlimited  unlimited  bytes\nMax file locks     {soft}     {hard}   locks\n"
            )
        };
        assert!(is_branded(&line("1212502605", "1212502605")) && is_branded(&line("7", "1212502605")));
        assert!(!is_branded(&line("unlimited", "unlimited")) && !is_branded(""));
    }
}
