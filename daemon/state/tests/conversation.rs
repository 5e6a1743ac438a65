//! A conversation is stored whole, in order, by its rightful owner, once.

mod kit;

use hermes_core::{
    Content, CostStatus, DisplayKind, EffectDisposition, FinishReason, Instant, Json, Message, MessageId,
    Part, Role, TurnState, Usage,
};
use hermes_state::{BeginTurnError, FinishTurn, InputRow, StateError, TurnRecord, TurnWrite, UsageDelta};
use kit::*;
use pretty_assertions::assert_eq;
use proptest::prelude::*;

#[tokio::test]
async fn what_is_frozen_comes_back_byte_for_byte() {
    let home = Home::new();
    let new = new_session("20260101_000000_aaaaaaaa");
    let db = home.db();
    db.create_session(new.clone()).await.unwrap();
    db.close().await;
    let stored = home.db().load_session(&new.id).await.unwrap().unwrap();
    assert_eq!(stored.system_prompt.as_deref(), Some(new.system_prompt.as_str()));
    assert_eq!(stored.tool_schemas.as_deref(), Some(new.tool_schemas.as_str()));
    assert_eq!(stored.tool_names, Some(new.tool_names));
    assert_eq!(stored.model_config, new.model_config);
    assert_eq!(
        (stored.model.as_deref(), stored.provider.as_deref(), stored.base_url.as_deref()),
        (Some("model-a"), Some("provider-a"), Some("http://a/v1"))
    );
    assert_eq!((stored.source.as_str(), stored.platform.as_deref()), ("cli", Some("cli")));
    assert_eq!(stored.last_activity, Instant(900.0));
}

#[tokio::test]
async fn prompts_and_schemas_are_stored_once() {
    let home = Home::new();
    let db = home.db();
    session(&db, "one").await;
    session(&db, "two").await;
    db.set_prompt(&id("two"), "Another prompt", "model-b", "provider-b").await.unwrap();
    assert_eq!(ask::<i64>(&home, "SELECT count(*) FROM system_prompts"), 2);
    assert_eq!(ask::<i64>(&home, "SELECT count(*) FROM tool_schema_sets"), 1);
    let two = db.load_session(&id("two")).await.unwrap().unwrap();
    assert_eq!(two.system_prompt.as_deref(), Some("Another prompt"));
    assert_eq!((two.model.as_deref(), two.provider.as_deref()), (Some("model-b"), Some("provider-b")));
    let unknown = db.set_prompt(&id("three"), "x", "m", "p").await;
    assert!(matches!(unknown, Err(StateError::UnknownSession(_))));
}

#[tokio::test]
async fn an_id_is_given_once() {
    let home = Home::new();
    let db = home.db();
    session(&db, "one").await;
    assert!(matches!(db.create_session(new_session("one")).await, Err(StateError::SessionExists(_))));
    assert_eq!(db.load_session(&id("two")).await.unwrap(), None);
}

#[tokio::test]
async fn rows_of_every_kind_come_back_as_they_were() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    let mut user = Message::user(
        Content::Parts(vec![
            Part::Text("look \u{0} here".into()),
            Part::Image { url: "media:abc".into(), detail: Some("high".into()) },
        ]),
        Instant(7.25),
    );
    user.api_content = Some("look here, with a note".into());
    user.platform_message_id = Some("tg-1".into());
    let mut asks = Message::new(Role::Assistant, Instant(8.0));
    asks.tool_calls =
        vec![call("call_1", "read_file", "{\"path\": \"a\"}"), call("call_2", "terminal", "{broken")];
    asks.tool_calls[0].provider_data = Some(Json::parse("{\"call_id\":  1.0}").unwrap());
    asks.finish_reason = Some(FinishReason::ToolCalls);
    asks.reasoning = Some("thinking".into());
    asks.reasoning_content = Some("thinking, raw".into());
    asks.reasoning_details = Some(Json::parse("[ {\"type\": \"x\"} ]").unwrap());
    asks.codex_reasoning_items = Some(Json::parse("[1]").unwrap());
    asks.codex_message_items = Some(Json::parse("[2]").unwrap());
    let mut result = Message::tool_result(&asks.tool_calls[1], "{\"error\":\"…\"}", Instant(9.0));
    result.effect = Some(EffectDisposition::Unknown);
    let mut partial = Message::assistant("", Instant(3.0));
    partial.display = Some(DisplayKind(DisplayKind::PARTIAL.into()));

    let mut begin = begin(&session, "");
    begin.user = user.clone();
    let turn_id = begin.turn_id.clone();
    let begun = db.begin_turn(begin).await.unwrap();
    let key = hermes_state::TurnKey { session_id: session.clone(), turn_id, generation: begun.generation };
    let mut ids = vec![begun.message_id];
    ids.extend(db.write_turn(&key, rows([asks.clone(), result.clone()])).await.unwrap());
    ids.extend(
        db.finish_turn(
            &key,
            FinishTurn {
                rows: vec![partial.clone()],
                ..finish(TurnState::Interrupted, "interrupted_by_user")
            },
        )
        .await
        .unwrap(),
    );
    let expected: Vec<Message> = [user, asks, result, partial]
        .into_iter()
        .zip(&ids)
        .map(|(message, id)| Message { id: Some(*id), ..message })
        .collect();
    assert_eq!(db.load_messages(&session).await.unwrap(), expected);
    assert_eq!(db.display_rows(&session, MessageId(0), 100).await.unwrap(), expected);
    assert_eq!(db.display_rows(&session, ids[1], 1).await.unwrap(), expected[2..3]);
    assert!(ids.is_sorted());

    let stored = db.load_session(&session).await.unwrap().unwrap();
    assert_eq!((stored.message_count, stored.tool_call_count), (4, 2));
    assert_eq!(stored.last_activity, Instant(1_000.0));
}

#[tokio::test]
async fn a_row_with_an_id_is_not_written_again() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    let (key, _) = turn(&db, &session, "hi").await;
    let mut answer = assistant("hello");
    answer.id = db.write_turn(&key, rows([answer.clone()])).await.unwrap().pop();
    let again = db.write_turn(&key, rows([answer.clone(), assistant("more")])).await.unwrap();
    assert_eq!(again.first(), answer.id.as_ref());
    assert_eq!(db.load_messages(&session).await.unwrap().len(), 3);
    assert_eq!(db.load_session(&session).await.unwrap().unwrap().message_count, 3);
}

#[tokio::test]
async fn a_later_turn_fences_the_earlier_one() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    let (first, _) = turn(&db, &session, "first").await;
    let (second, _) = turn(&db, &session, "second").await;
    assert!(second.generation > first.generation);
    let stale = db.write_turn(&first, rows([assistant("late")])).await.unwrap_err();
    assert!(matches!(stale, StateError::StaleGeneration { turn_id } if turn_id == first.turn_id));
    let stale = db.finish_turn(&first, finish(TurnState::Completed, "x")).await;
    assert!(matches!(stale, Err(StateError::StaleGeneration { .. })));
    db.write_turn(&second, rows([assistant("in time")])).await.unwrap();
    let texts: Vec<String> =
        db.load_messages(&session).await.unwrap().iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["first", "second", "in time"]);
    let record = db.turn(&session, &first.turn_id).await.unwrap().unwrap();
    assert_eq!((record.state, record.exit_reason.as_deref()), (TurnState::Interrupted, Some("superseded")));
    assert_eq!(
        db.unfinished_turns().await.unwrap().iter().map(TurnRecord::key).collect::<Vec<_>>(),
        [second]
    );
}

#[tokio::test]
async fn a_turn_ends_once() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    let (key, user_row) = turn(&db, &session, "hi").await;
    db.finish_turn(&key, finish(TurnState::Failed, "all_retries_exhausted_no_response")).await.unwrap();
    for refused in [
        db.finish_turn(&key, finish(TurnState::Completed, "x")).await,
        db.write_turn(&key, rows([assistant("late")])).await,
        db.write_turn(&key, TurnWrite::default()).await,
    ] {
        assert!(matches!(refused, Err(StateError::StaleGeneration { .. })));
    }
    let record = db.turn(&session, &key.turn_id).await.unwrap().unwrap();
    assert_eq!(record.state, TurnState::Failed);
    assert_eq!(record.exit_reason.as_deref(), Some("all_retries_exhausted_no_response"));
    assert_eq!((record.started_at, record.ended_at), (Instant(1_000.0), Some(Instant(1_001.0))));
    assert_eq!(record.user_message_id, Some(user_row));
    assert_eq!(db.unfinished_turns().await.unwrap(), []);
}

#[tokio::test]
async fn the_same_client_message_makes_one_turn() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    let mut first = begin(&session, "hi");
    first.client_message_id = Some("c1".into());
    let begun = db.begin_turn(first.clone()).await.unwrap();
    let mut again = begin(&session, "hi");
    again.client_message_id = Some("c1".into());
    match db.begin_turn(again.clone()).await.unwrap_err() {
        BeginTurnError::Duplicate { turn_id, state, exit_reason } => {
            assert_eq!((turn_id, state, exit_reason), (first.turn_id.clone(), TurnState::Running, None));
        }
        other => panic!("{other}"),
    }
    let key = hermes_state::TurnKey {
        session_id: session.clone(),
        turn_id: first.turn_id.clone(),
        generation: begun.generation,
    };
    db.finish_turn(&key, finish(TurnState::Completed, "done")).await.unwrap();
    let refused = db.begin_turn(again.clone()).await.unwrap_err();
    assert!(
        matches!(refused, BeginTurnError::Duplicate { state: TurnState::Completed, exit_reason: Some(reason), .. } if reason == "done")
    );
    assert_eq!(db.load_messages(&session).await.unwrap().len(), 1);
    // Another session's clients count by themselves.
    let other = kit::session(&db, "two").await;
    again.session_id = other;
    db.begin_turn(again).await.unwrap();
}

#[tokio::test]
async fn a_turn_needs_its_session() {
    let home = Home::new();
    let db = home.db();
    let refused = db.begin_turn(begin(&id("nowhere"), "hi")).await.unwrap_err();
    assert!(matches!(refused, BeginTurnError::State(StateError::UnknownSession(_))));
}

#[tokio::test]
async fn the_first_end_wins_and_a_turn_opens_again() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    let reason = async || db.load_session(&session).await.unwrap().unwrap().end_reason;
    db.end_session(&session, "ws_disconnect").await.unwrap();
    db.end_session(&session, "cli_close").await.unwrap();
    assert_eq!(reason().await.as_deref(), Some("ws_disconnect"));
    db.end_session(&session, "new_session").await.unwrap();
    assert_eq!(reason().await.as_deref(), Some("new_session"));
    db.end_session(&session, "session_reset").await.unwrap();
    assert_eq!(reason().await.as_deref(), Some("new_session"));
    turn(&db, &session, "hi").await;
    let stored = db.load_session(&session).await.unwrap().unwrap();
    assert_eq!((stored.end_reason, stored.ended_at), (None, None));
    db.end_session(&id("nowhere"), "cli_close").await.unwrap();
}

#[tokio::test]
async fn usage_adds_up_per_session_and_per_model() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    let (key, _) = turn(&db, &session, "hi").await;
    let usage = Usage { input: 10, output: 5, cache_read: 100, cache_write: 2, reasoning: 1 };
    let delta = |model: &str, task: &str, cost: Option<f64>, status| UsageDelta {
        model: model.into(),
        provider: "p".into(),
        base_url: "u".into(),
        mode: String::new(),
        task: task.into(),
        api_calls: 1,
        usage,
        estimated_cost_usd: cost,
        cost_status: status,
    };
    let book =
        async |delta| db.write_turn(&key, TurnWrite { rows: vec![], usage: Some(delta) }).await.unwrap();
    book(delta("m", "", Some(0.5), CostStatus::Estimated)).await;
    book(delta("m", "", Some(0.25), CostStatus::Actual)).await;
    book(delta("m2", "", None, CostStatus::Unknown)).await;
    db.record_usage(&session, delta("small", "title_generation", Some(9.0), CostStatus::Estimated))
        .await
        .unwrap();
    let stored = db.load_session(&session).await.unwrap().unwrap();
    assert_eq!(stored.api_call_count, 3);
    assert_eq!(stored.usage, Usage { input: 30, output: 15, cache_read: 300, cache_write: 6, reasoning: 3 });
    assert_eq!((stored.estimated_cost_usd, stored.actual_cost_usd), (Some(0.75), Some(0.25)));
    assert_eq!(stored.cost_status, CostStatus::Unknown);
    assert_eq!(stored.model.as_deref(), Some("model-a"));
    let rows: String = ask(
        &home,
        "SELECT group_concat(model || '/' || task || '/' || api_call_count || '/' || input_tokens || '/' || cost_status, ' ')
         FROM (SELECT * FROM session_model_usage ORDER BY model)",
    );
    assert_eq!(rows, "m//2/20/estimated m2//1/10/unknown small/title_generation/1/10/estimated");
}

#[tokio::test]
async fn numbers_of_an_unknown_session_are_kept() {
    let home = Home::new();
    let db = home.db();
    let delta = UsageDelta { model: "m".into(), api_calls: 2, ..UsageDelta::default() };
    db.record_usage(&id("lost"), delta).await.unwrap();
    let stored = db.load_session(&id("lost")).await.unwrap().unwrap();
    assert_eq!((stored.source.as_str(), stored.api_call_count), ("unknown", 2));
}

fn input(session: &str, name: &str, client: Option<&str>) -> InputRow {
    InputRow {
        id: name.into(),
        session_id: id(session),
        principal: "person:telegram:1".into(),
        mode: "queue".into(),
        text: format!("text of {name}"),
        options: Json::from(serde_json::json!({ "yolo": false })),
        client_message_id: client.map(Into::into),
        created_at: Instant(5.0),
    }
}

#[tokio::test]
async fn inputs_wait_in_order_and_leave_once() {
    let home = Home::new();
    let db = home.db();
    session(&db, "one").await;
    session(&db, "two").await;
    assert!(db.push_input(input("two", "b", Some("c"))).await.unwrap());
    assert!(db.push_input(input("one", "z", None)).await.unwrap());
    assert!(db.push_input(input("one", "a", None)).await.unwrap());
    assert!(!db.push_input(input("one", "a", None)).await.unwrap());
    assert!(!db.push_input(input("two", "other", Some("c"))).await.unwrap());
    let unknown = db.push_input(input("three", "q", None)).await;
    assert!(matches!(unknown, Err(StateError::UnknownSession(_))));
    db.close().await;

    let db = home.db();
    assert_eq!(db.sessions_with_inputs().await.unwrap(), [id("two"), id("one")]);
    assert_eq!(db.list_inputs(&id("one")).await.unwrap(), [input("one", "z", None), input("one", "a", None)]);
    assert!(db.take_input("z").await.unwrap());
    assert!(!db.take_input("z").await.unwrap());
    assert_eq!(db.list_inputs(&id("one")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_input_becomes_its_turn_in_one_step() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    db.push_input(input("one", "a", Some("c1"))).await.unwrap();
    let mut turn = begin(&session, "text of a");
    turn.client_message_id = Some("c1".into());
    turn.queued_input = Some("a".into());
    db.begin_turn(turn.clone()).await.unwrap();
    assert_eq!(db.list_inputs(&session).await.unwrap(), []);
    // A refused turn leaves the queue alone.
    db.push_input(input("one", "b", Some("c1"))).await.unwrap();
    turn.turn_id = hermes_core::TurnId::mint();
    turn.queued_input = Some("b".into());
    assert!(db.begin_turn(turn).await.is_err());
    assert_eq!(db.list_inputs(&session).await.unwrap().len(), 1);
}

#[tokio::test]
async fn compacted_rows_are_shown_and_rewound_ones_are_not() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    for text in ["compacted", "rewound", "live"] {
        turn(&db, &session, text).await;
    }
    home.raw()
        .execute_batch(
            "UPDATE messages SET active = 0, compacted = 1 WHERE content = 'compacted';
             UPDATE messages SET active = 0 WHERE content = 'rewound';
             INSERT INTO messages (session_id, role, content, timestamp) VALUES ('one', 'session_meta', 'x', 0);",
        )
        .unwrap();
    let texts = |rows: Vec<Message>| rows.iter().map(|row| row.text().into_owned()).collect::<Vec<_>>();
    assert_eq!(texts(db.load_messages(&session).await.unwrap()), ["live"]);
    assert_eq!(texts(db.display_rows(&session, MessageId(0), 10).await.unwrap()), ["compacted", "live"]);
    let found = async |text: &str| db.search(text, 5).await.unwrap().len();
    assert_eq!((found("compacted").await, found("rewound").await, found("live").await), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn an_inline_database_does_the_same_on_a_paused_clock() {
    let home = Home::new();
    let options = hermes_state::OpenOptions { inline_writer: true, ..Default::default() };
    let (db, _) = home.try_open(&options).unwrap();
    let session = session(&db, "one").await;
    let before = tokio::time::Instant::now();
    for at in 0..60 {
        exchange(&db, &session, &format!("question {at}"), "answer").await;
    }
    assert_eq!(tokio::time::Instant::now(), before);
    assert_eq!(db.load_messages(&session).await.unwrap().len(), 120);
    db.close().await;
    assert!(matches!(db.load_messages(&session).await, Err(StateError::Closed)));
    assert!(matches!(db.end_session(&session, "x").await, Err(StateError::Closed)));
}

/// One step of an owner of a turn, which may have lost it.
#[derive(Debug, Clone)]
enum Step {
    Begin { client: Option<u8> },
    Write { owner: usize, rows: usize },
    Finish { owner: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        proptest::option::of(0_u8..4).prop_map(|client| Step::Begin { client }),
        (0_usize..6, 0_usize..4).prop_map(|(owner, rows)| Step::Write { owner, rows }),
        (0_usize..6).prop_map(|owner| Step::Finish { owner }),
    ];
    proptest::collection::vec(step, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Against a model: whoever began last and has not finished may write; rows keep their order;
    /// the counters are the rows' number; and all of it is there after a reopening.
    #[test]
    fn only_the_running_turn_writes_and_order_is_kept(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let home = Home::new();
            let options = hermes_state::OpenOptions { inline_writer: true, ..Default::default() };
            let db = home.try_open(&options).unwrap().0;
            let session = session(&db, "one").await;
            let (mut owners, mut running, mut expected, mut clients) = (Vec::new(), None, Vec::new(), Vec::new());
            for (at, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Begin { client } => {
                        let mut turn = begin(&session, &format!("user {at}"));
                        turn.client_message_id = client.map(|client| client.to_string());
                        let turn_id = turn.turn_id.clone();
                        let outcome = db.begin_turn(turn).await;
                        if client.is_some() && clients.contains(&client) {
                            assert!(matches!(outcome, Err(BeginTurnError::Duplicate { .. })));
                        } else {
                            clients.push(client);
                            let begun = outcome.unwrap();
                            running = Some(owners.len());
                            owners.push(hermes_state::TurnKey {
                                session_id: session.clone(), turn_id, generation: begun.generation,
                            });
                            expected.push(format!("user {at}"));
                        }
                    }
                    Step::Write { owner, rows: count } => {
                        let Some(key) = owners.get(owner) else { continue };
                        let texts: Vec<String> = (0..count).map(|row| format!("row {at}.{row}")).collect();
                        let outcome = db.write_turn(key, rows(texts.iter().map(|text| assistant(text)))).await;
                        if running == Some(owner) {
                            assert_eq!(outcome.unwrap().len(), count);
                            expected.extend(texts);
                        } else {
                            assert!(matches!(outcome, Err(StateError::StaleGeneration { .. })));
                        }
                    }
                    Step::Finish { owner } => {
                        let Some(key) = owners.get(owner) else { continue };
                        let outcome = db.finish_turn(key, finish(TurnState::Completed, "done")).await;
                        assert_eq!(outcome.is_ok(), running == Some(owner));
                        if outcome.is_ok() {
                            running = None;
                        }
                    }
                }
            }
            drop(db);
            let db = home.db();
            let stored = db.load_messages(&session).await.unwrap();
            let texts: Vec<String> = stored.iter().map(|message| message.text().into_owned()).collect();
            assert_eq!(&texts, &expected);
            assert!(stored.is_sorted_by_key(|message| message.id));
            let counted = db.load_session(&session).await.unwrap().unwrap().message_count;
            assert_eq!(counted, expected.len() as u64);
            assert_eq!(db.unfinished_turns().await.unwrap().len(), usize::from(running.is_some()));
        });
    }
}
