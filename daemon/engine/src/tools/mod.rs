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

#[cfg(test)]
mod tests {
    use hermes_tools::ToolSettings;

    use super::*;

    #[test]
    fn the_schemas_of_this_room_are_short_product_text() {
        let (_, settings) = watch::channel(Arc::new(Settings::defaults()));
        let all = tools(ConversationTools { todos: Arc::default(), settings });
        let shown: Vec<String> = all
            .iter()
            .map(|tool| {
                let schema = tool.schema(&ToolSettings::default());
                let parameters = serde_json::to_string_pretty(&schema.parameters.to_value()).unwrap();
                format!("{}: {}\n{parameters}", schema.name, schema.description)
            })
            .collect();
        insta::assert_snapshot!("tool_schemas", shown.join("\n\n"));
    }
}
