//! The `state` section of the settings.

/// How hard a commit is pushed to the disk.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema, serde::Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Synchronous {
    /// A commit survives the death of every process. A power cut may lose the last commits, but
    /// never damages the file.
    #[default]
    Normal,
    /// A commit survives a power cut too, at the price of a disk flush each.
    Full,
}

/// Settings of the section `state`: how the profile's database is written.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StateSettings {
    /// `normal`: commits survive a crash of every process. `full`: they survive a power cut too,
    /// but each costs a disk flush.
    pub synchronous: Synchronous,
}
