//! What a model reads: the system prompt, the project's own instructions, and a history that every provider accepts.
//!
//! The crate decides and renders; it runs no turn and sends nothing. It must not know the engine, the learning
//! room (memory and skills arrive as rendered text in [`PromptParts`]), SQL, or any wire format. Time, home, machine
//! and settings come in as arguments.
//!
//! Start with [`build_prompt`] for the prompt of a new session, [`restore`] for a stored one, and
//! [`repair_history`] for the messages behind it. All texts that we send stand in [`prompts`].

// The system prompt.
mod project;
mod prompt;
pub mod prompts;
mod scan;
mod settings;
mod steer;

// The history.
mod closing;
mod estimate;
mod repair;

pub use closing::{Closing, NO_EFFECT_TOOLS, closing_rows};
pub use estimate::{IMAGE_TOKENS, estimate_tokens, message_tokens, text_tokens};
pub use project::{FileReport, FileState, ReadCheck, context_file_cap};
pub use prompt::{
    BuiltPrompt, LocalDate, MachineFacts, ModelSwitch, PromptExtras, PromptInputs, PromptParts, Restore,
    build_prompt, restore, switch_model,
};
pub use repair::{RepairReport, Repaired, Violation, legal, repair_history};
pub use scan::{Finding, SCAN_CHARS, ScanScope, scan};
pub use settings::{ContextSettings, GuidanceSettings, HintOverride, Switch};
pub use steer::{STEER_CLOSE, STEER_OPEN, defang_steer, steer_block};
