//! The tools of one session, frozen when it opens: what the model is told, and what it may call.

use std::collections::HashMap;
use std::sync::Arc;

use hermes_core::{Json, ToolSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Schemas, their exact JSON text and the authority list of one session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SessionTools {
    frozen: Arc<Frozen>,
    warnings: Vec<String>,
}

/// The part that sessions with equal tools share.
#[derive(Debug)]
pub(super) struct Frozen {
    /// The authority list, sorted.
    names: Vec<String>,
    schemas: Arc<[ToolSchema]>,
    json: Arc<str>,
    /// Parameter schemas by tool name, for fitting arguments.
    parameters: HashMap<String, Value>,
}

/// Stored tools of a session that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the stored tool schemas of the session are not readable")]
pub struct RestoreError(#[from] serde_json::Error);

/// One element of the `tools` array as the `chat_completions` API spells it.
#[derive(Serialize, Deserialize)]
struct WireTool<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    function: WireFunction<'a>,
}

#[derive(Serialize, Deserialize)]
struct WireFunction<'a> {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
}

impl Frozen {
    pub(super) fn new(schemas: Vec<ToolSchema>) -> Self {
        let names = schemas.iter().map(|schema| schema.name.clone()).collect();
        let json = wire_text(&schemas);
        Self::with(names, schemas, json)
    }

    fn with(mut names: Vec<String>, schemas: Vec<ToolSchema>, json: String) -> Self {
        names.sort();
        names.dedup();
        let parameters =
            schemas.iter().map(|schema| (schema.name.clone(), schema.parameters.to_value())).collect();
        Self { names, schemas: schemas.into(), json: json.into(), parameters }
    }
}

impl SessionTools {
    pub(super) fn new(frozen: Arc<Frozen>, warnings: Vec<String>) -> Self {
        Self { frozen, warnings }
    }

    /// A session without tools.
    pub fn none() -> Self {
        Self::new(Arc::new(Frozen::new(Vec::new())), Vec::new())
    }

    /// The tools of a stored session, exactly as they were: `json` is kept byte for byte, whatever is
    /// registered today. `names` is the authority list.
    ///
    /// # Errors
    /// When `json` is not an array of tools.
    pub fn restore(names: Vec<String>, json: &str) -> Result<Self, RestoreError> {
        let wire: Vec<WireTool<'_>> =
            if json.trim().is_empty() { Vec::new() } else { serde_json::from_str(json)? };
        let schemas = wire
            .into_iter()
            .map(|tool| ToolSchema {
                name: tool.function.name,
                description: tool.function.description,
                parameters: tool
                    .function
                    .parameters
                    .and_then(|raw| Json::parse(raw.get()).ok())
                    .unwrap_or_else(|| Json::from(Value::Object(serde_json::Map::new()))),
            })
            .collect();
        let json = if json.trim().is_empty() { "[]".to_owned() } else { json.to_owned() };
        Ok(Self::new(Arc::new(Frozen::with(names, schemas, json)), Vec::new()))
    }

    /// All names that the session may call, sorted.
    pub fn names(&self) -> &[String] {
        &self.frozen.names
    }

    /// What the model is told, sorted by name.
    pub fn schemas(&self) -> Arc<[ToolSchema]> {
        Arc::clone(&self.frozen.schemas)
    }

    /// The same as the text of a `chat_completions` `tools` array: the very bytes of every request.
    pub fn json(&self) -> Arc<str> {
        Arc::clone(&self.frozen.json)
    }

    /// What the user should know about how this list came about.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether the session may call `name`.
    pub fn allows(&self, name: &str) -> bool {
        self.frozen.names.binary_search_by(|known| known.as_str().cmp(name)).is_ok()
    }

    /// The parameter schema that the model was shown.
    pub(crate) fn parameters(&self, name: &str) -> Option<&Value> {
        self.frozen.parameters.get(name)
    }
}

fn wire_text(schemas: &[ToolSchema]) -> String {
    let tools: Vec<WireTool<'_>> = schemas
        .iter()
        .map(|schema| WireTool {
            kind: "function".to_owned(),
            function: WireFunction {
                name: schema.name.clone(),
                description: schema.description.clone(),
                parameters: serde_json::from_str(schema.parameters.as_str()).ok(),
            },
        })
        .collect();
    serde_json::to_string(&tools).expect("strings and checked JSON always serialise")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn opened() -> SessionTools {
        let schema = |name: &str| ToolSchema {
            name: name.to_owned(),
            description: format!("does {name}"),
            parameters: Json::from(json!({ "type": "object", "properties": { "b": {}, "a": {} } })),
        };
        SessionTools::new(Arc::new(Frozen::new(vec![schema("alpha"), schema("beta")])), Vec::new())
    }

    #[test]
    fn the_text_is_the_tools_array_of_a_request() {
        assert_eq!(
            &*opened().json(),
            "[{\"type\":\"function\",\"function\":{\"name\":\"alpha\",\"description\":\"does alpha\",\
             \"parameters\":{\"type\":\"object\",\"properties\":{\"b\":{},\"a\":{}}}}},\
             {\"type\":\"function\",\"function\":{\"name\":\"beta\",\"description\":\"does beta\",\
             \"parameters\":{\"type\":\"object\",\"properties\":{\"b\":{},\"a\":{}}}}}]",
        );
        assert_eq!(&*SessionTools::none().json(), "[]");
    }

    #[test]
    fn a_stored_session_gets_its_bytes_back() {
        let opened = opened();
        let restored = SessionTools::restore(opened.names().to_vec(), &opened.json()).unwrap();
        assert_eq!(restored.json(), opened.json());
        assert_eq!(restored.schemas(), opened.schemas());
        assert_eq!(restored.names(), opened.names());
        // Bytes of another writer stay too.
        let theirs = "[ {\"type\": \"function\", \"function\": {\"name\": \"x\", \"parameters\": {\"b\":1, \"a\":2}}} ]";
        let restored = SessionTools::restore(vec!["x".to_owned()], theirs).unwrap();
        assert_eq!(&*restored.json(), theirs);
        assert_eq!(restored.schemas()[0].parameters.as_str(), "{\"b\":1, \"a\":2}");
        assert!(restored.allows("x") && !restored.allows("y"));
        assert!(SessionTools::restore(Vec::new(), "").unwrap().names().is_empty());
        assert!(SessionTools::restore(Vec::new(), "{}").is_err());
    }
}
