//! Where a profile lives, and what its owner has set: home and profile resolution, the layers of
//! `config.yaml`, secrets in `.env`, validation by the embedded schema, and where each value came from.
//!
//! This crate knows no section's meaning: a section's struct, its defaults and its bounds belong to the
//! crate that acts on it; here they arrive as one generated JSON Schema. It reads nothing from the process
//! environment, the clock or the working directory by itself: all of that comes in as arguments.
//!
//! Start with [`Home::resolve`], then [`load`], then [`Settings::section`].
//!
//! ```
//! use hermes_config::{Home, LoadInput, load};
//!
//! #[derive(Default, serde::Deserialize)]
//! #[serde(default)]
//! struct Display {
//!     skin: String,
//! }
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("config.yaml"), "display:\n  skin: mono\n")?;
//! let loaded = load(&LoadInput::new(&Home::at(folder.path().to_owned())))?;
//! assert_eq!(loaded.settings.section::<Display>("display").skin, "mono");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Homes.
mod home;
mod private_file;
mod profile;
mod socket;

// Layers, from the text of a file to the effective settings.
mod diagnostic;
mod edit;
mod env_file;
mod env_layer;
mod expand;
mod legacy;
mod load;
mod mask;
mod mask_text;
mod project;
mod read;
mod render;
mod schema;
mod settings;
mod tree;
mod value;
mod yaml;

pub use diagnostic::{Diagnostic, DiagnosticKind, Origin, Severity};
pub use edit::{EditError, edit_setting};
pub use env_file::{EnvFile, EnvFileError};
pub use env_layer::{EnvMapping, env_mappings, is_truthy};
pub use home::{Home, HomeError, HomeInput};
pub use load::{CONFIG_VARIABLE, LoadError, LoadInput, Loaded, load};
pub use mask::{is_secret_key, masked_value};
pub use mask_text::mask_yaml_text;
pub use private_file::{create_private_dir, write_private};
pub use profile::{ProfileName, ProfileNameError};
pub use project::PROJECT_FILE;
pub use render::to_yaml;
pub use schema::schema_json;
pub use settings::{Entry, Settings};
pub use socket::{SocketEnv, SocketFolderError, prepare_socket_folder};
pub use value::typed_value;
