//! The tools of this room: those that work on the conversation itself.

mod clarify;
mod todo;

use std::sync::Arc;

use hermes_config::Settings;
use hermes_tools::Tool;
use tokio::sync::watch;

pub use clarify::ClarifySettings;
pub use todo::TodoLists;

/// What these tools work with.
#[derive(Debug, Clone)]
pub struct ConversationTools {
    /// The same lists that the engine gets.
    pub todos: Arc<TodoLists>,
    /// The newest good settings.
    pub settings: watch::Receiver<Arc<Settings>>,
}

/// `todo` and `clarify`.
pub fn tools(deps: ConversationTools) -> Vec<Arc<dyn Tool>> {
    let ConversationTools { todos, settings } = deps;
    vec![Arc::new(todo::Todo::new(todos)), Arc::new(clarify::Clarify::new(settings))]
}
