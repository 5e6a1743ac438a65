//! Things that look like files but never end, wait for somebody, or show a process's memory.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use super::PathRule;
use super::resolve::Trail;

const DEVICES: [&str; 9] =
    ["zero", "random", "urandom", "full", "stdin", "stdout", "stderr", "tty", "console"];

/// Files of a process that hold its environment, its arguments or its memory.
const PROCESS_FILES: [&str; 9] =
    ["environ", "cmdline", "maps", "smaps", "smaps_rollup", "numa_maps", "mem", "auxv", "pagemap"];

/// Why a path may not be read, for what kind of thing it is.
pub(super) fn read_rule(trail: &Trail) -> Option<PathRule> {
    if trail.all().any(is_device_name) {
        return Some(PathRule::Device);
    }
    // `/dev/null` is harmless to read: it is empty.
    kind_rule(trail).filter(|_| trail.target != Path::new("/dev/null"))
}

/// Why a path may not be written: a tool replaces files, and must not replace a device by one.
pub(super) fn write_rule(trail: &Trail) -> Option<PathRule> {
    if trail.all().any(is_device_name) { Some(PathRule::Device) } else { kind_rule(trail) }
}

fn kind_rule(trail: &Trail) -> Option<PathRule> {
    if trail.nameless {
        return Some(PathRule::Pipe);
    }
    let kind = fs::symlink_metadata(&trail.target).ok()?.file_type();
    if kind.is_fifo() || kind.is_socket() {
        Some(PathRule::Pipe)
    } else if kind.is_char_device() || kind.is_block_device() {
        Some(PathRule::Device)
    } else {
        None
    }
}

fn is_device_name(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().skip(1).map(|part| part.to_str().unwrap_or("")).collect();
    let standard = |descriptor: &str| matches!(descriptor, "0" | "1" | "2");
    match parts.as_slice() {
        ["dev", "fd", descriptor] => standard(descriptor),
        ["dev", name] => DEVICES.contains(name),
        ["proc", "kcore" | "kmsg"] => true,
        ["proc", _, "fd", descriptor] | ["proc", _, "task", _, "fd", descriptor] => standard(descriptor),
        ["proc", _, file] | ["proc", _, "task", _, file] => PROCESS_FILES.contains(file),
        _ => false,
    }
}
