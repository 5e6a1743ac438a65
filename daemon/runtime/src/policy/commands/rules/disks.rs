//! Disks and file systems.

use super::super::CommandFacts;
use super::super::places::is_disk;
use super::super::report::Report;
use super::super::simple::Simple;
use super::shape_exact;

/// What only shows partitions.
const SHOWS: [&str; 11] =
    ["-l", "--list", "print", "-s", "--getsize", "-d", "--dump", "-V", "--version", "-h", "--help"];

pub(super) fn judge(simple: &Simple, _facts: &CommandFacts<'_>, report: &mut Report) {
    let program = simple.program.as_str();
    let formats = program.starts_with("mkfs")
        || matches!(program, "mke2fs" | "mkswap" | "wipefs" | "blkdiscard" | "newfs" | "hdparm" | "nvme")
            && !simple.has_arg(&["--help", "-I", "-i", "list", "--no-act", "-n"]);
    if formats {
        return report.block("block.format", "formats or erases a disk");
    }
    match program {
        "parted" | "fdisk" | "sfdisk" | "gdisk" | "sgdisk" | "cfdisk" if !simple.has_arg(&SHOWS) => {
            report.block("block.format", "changes the partitions of a disk");
        }
        "diskutil" if simple.args.first().is_some_and(|arg| arg.text.to_lowercase().starts_with("erase")) => {
            report.block("block.format", "erases a disk");
        }
        "mount" | "losetup"
            if simple.args.is_empty() || simple.has_arg(&["-l", "-a", "--list", "--help"]) => {}
        "cryptsetup" | "lvremove" | "vgremove" | "pvremove" | "zpool" | "zfs" | "mdadm" | "losetup"
        | "mount" | "umount" | "swapoff" => {
            report.ask("disk.manage", "changes disks or file systems", shape_exact(simple));
        }
        "dd" => {
            let source = |beginning: &str| simple.args.iter().any(|arg| arg.text.starts_with(beginning));
            // `of=` a disk is blocked where writes are judged.
            if source("if=") || source("of=") {
                report.ask("disk.dd", "copies raw data with dd", shape_exact(simple));
            }
        }
        "shred" if simple.args.iter().any(|arg| is_disk(&arg.text)) => {
            report.block("block.raw_disk", "overwrites a disk as a whole");
        }
        _ => {}
    }
}
