//! Which tools there are, and which of them a session gets.

mod availability;
mod resolve;
mod sanitize;
mod session;
mod toolsets;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hermes_core::{Clock, Json, ToolSchema};

use crate::settings::ToolSettings;
use crate::tool::Tool;
use availability::Availability;
pub use resolve::ToolsetChoice;
use session::Frozen;
pub use session::{RestoreError, SessionTools};

/// Names of the tools through which deferred tools are reached (spec 40 §4): nothing else may take them.
pub(crate) const BRIDGE: [&str; 3] = ["tool_call", "tool_describe", "tool_search"];

/// Toolsets of MCP servers begin so; one MCP server may replace another's tool.
const MCP_PREFIX: &str = "mcp-";

/// Lists of schemas that are kept for further sessions with the same tools (spec 40 §1.2).
const KEPT_LISTS: usize = 8;

/// A tool that cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Two toolsets claim one name.
    #[error("tool `{name}` of toolset `{taken_by}` cannot be replaced by one of toolset `{wanted_by}`")]
    NameTaken { name: String, taken_by: String, wanted_by: String },
    #[error("tool name `{name}` is reserved")]
    Reserved { name: String },
    #[error("tool name `{name}` is not made of 1 to 64 letters, digits, `_` and `-`")]
    InvalidName { name: String },
}

/// All registered tools. One for the process; shared by reference.
#[derive(Debug)]
pub struct Registry {
    tools: RwLock<Arc<Snapshot>>,
    availability: Availability,
    lists: Mutex<VecDeque<(ListKey, Arc<Frozen>)>>,
    clock: Arc<dyn Clock>,
}

/// A consistent state of the registry.
#[derive(Debug, Clone, Default)]
struct Snapshot {
    tools: BTreeMap<String, Arc<dyn Tool>>,
    generation: u64,
}

/// What a list of schemas depends on.
#[derive(Debug, PartialEq)]
struct ListKey {
    names: Vec<String>,
    generation: u64,
    settings: ToolSettings,
}

impl Registry {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            tools: RwLock::default(),
            availability: Availability::default(),
            lists: Mutex::default(),
            clock,
        }
    }

    /// Adds a tool, or replaces the one of the same name and toolset.
    pub fn register(&self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        let name = tool.name().to_owned();
        if BRIDGE.contains(&name.as_str()) {
            return Err(RegisterError::Reserved { name });
        }
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
            return Err(RegisterError::InvalidName { name });
        }
        let mut current = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = current.tools.get(&name) {
            let both_mcp = old.toolset().starts_with(MCP_PREFIX) && tool.toolset().starts_with(MCP_PREFIX);
            if old.toolset() != tool.toolset() && !both_mcp {
                return Err(RegisterError::NameTaken {
                    name,
                    taken_by: old.toolset().to_owned(),
                    wanted_by: tool.toolset().to_owned(),
                });
            }
        }
        self.availability.forget(&name);
        let mut next = Snapshot::clone(&current);
        next.tools.insert(name, tool);
        next.generation += 1;
        *current = Arc::new(next);
        Ok(())
    }

    /// Takes a tool away, when it belongs to `toolset`. Says whether it was there.
    pub fn deregister(&self, name: &str, toolset: &str) -> bool {
        let mut current = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        if current.tools.get(name).is_none_or(|tool| tool.toolset() != toolset) {
            return false;
        }
        self.availability.forget(name);
        let mut next = Snapshot::clone(&current);
        next.tools.remove(name);
        next.generation += 1;
        *current = Arc::new(next);
        true
    }

    /// Counts the changes of the registry.
    pub fn generation(&self) -> u64 {
        self.snapshot().generation
    }

    /// The tool of that name, whether or not it can be used now.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.snapshot().tools.get(name).cloned()
    }

    /// The toolset that a tool belongs to.
    pub fn toolset_of(&self, name: &str) -> Option<String> {
        self.snapshot().tools.get(name).map(|tool| tool.toolset().to_owned())
    }

    /// Whether the tool can be used now. May ask the tool, which may be slow.
    pub fn is_available(&self, tool: &dyn Tool) -> bool {
        self.availability.ask(tool, self.clock.now())
    }

    /// Whether a session that names `toolset` would get at least one tool of it.
    pub fn is_toolset_available(&self, toolset: &str) -> bool {
        let snapshot = self.snapshot();
        let fixed = toolsets::find(toolset).map(toolsets::expand).unwrap_or_default();
        snapshot
            .tools
            .values()
            .filter(|tool| tool.toolset() == toolset || fixed.contains(&tool.name()))
            .any(|tool| self.is_available(&**tool))
    }

    /// Toolsets with a one-line description, sorted by name.
    pub fn toolsets(&self) -> Vec<(&'static str, &'static str)> {
        let mut all: Vec<_> = toolsets::TOOLSETS.iter().map(|set| (set.name, set.description)).collect();
        all.sort_unstable();
        all
    }

    /// Asks every tool anew from now on: settings changed, or a tool was switched.
    pub fn flush_availability(&self) {
        self.availability.flush();
    }

    /// Freezes the tools of a session that opens now (spec 40 §2.3): the choice, less what is not
    /// registered or not available. Schemas are sorted by name.
    pub fn open_session(&self, choice: &ToolsetChoice<'_>, settings: &ToolSettings) -> SessionTools {
        let snapshot = self.snapshot();
        let registered = |toolset: &str| -> Vec<String> {
            let of_set = snapshot.tools.values().filter(|tool| tool.toolset() == toolset);
            of_set.map(|tool| tool.name().to_owned()).collect()
        };
        let resolved = resolve::resolve(choice, &registered);
        for warning in &resolved.warnings {
            tracing::warn!(warning, "toolset choice");
        }
        let usable: Vec<&Arc<dyn Tool>> = resolved
            .tools
            .iter()
            .filter_map(|name| snapshot.tools.get(name))
            .filter(|tool| self.is_available(&***tool))
            .collect();
        let key = ListKey {
            names: usable.iter().map(|tool| tool.name().to_owned()).collect(),
            generation: snapshot.generation,
            settings: settings.clone(),
        };
        SessionTools::new(self.list(key, &usable, settings), resolved.warnings)
    }

    /// The list for `key`: one that is kept, or a new one.
    fn list(&self, key: ListKey, tools: &[&Arc<dyn Tool>], settings: &ToolSettings) -> Arc<Frozen> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, list)) = lists.iter().find(|(kept, _)| *kept == key) {
            return Arc::clone(list);
        }
        let schemas = tools.iter().map(|tool| definition(&***tool, settings)).collect();
        let list = Arc::new(Frozen::new(schemas));
        if lists.len() >= KEPT_LISTS {
            lists.pop_front();
        }
        lists.push_back((key, Arc::clone(&list)));
        list
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.tools.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A tool's schema under its registered name, in the shape that every provider takes.
fn definition(tool: &dyn Tool, settings: &ToolSettings) -> ToolSchema {
    let schema = tool.schema(settings);
    ToolSchema {
        name: tool.name().to_owned(),
        description: schema.description,
        parameters: Json::from(sanitize::sanitize(&schema.parameters.to_value())),
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
