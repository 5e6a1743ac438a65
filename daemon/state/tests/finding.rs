//! Sessions and messages are found by what people type, whatever they type.

mod kit;

use hermes_core::{Instant, Message, SessionId};
use hermes_state::{Db, ListFilter, NewSession, ResolveError, TitleError, TitleSource};
use kit::*;
use pretty_assertions::assert_eq;
use proptest::prelude::*;

async fn titled(db: &Db, name: &str, title: &str, started: f64) -> SessionId {
    let new = NewSession { title: Some(title.into()), started_at: Instant(started), ..new_session(name) };
    db.create_session(new).await.expect("the session is new");
    id(name)
}

#[tokio::test]
async fn sessions_are_found_by_id_prefix_and_title() {
    let home = Home::new();
    let db = home.db();
    titled(&db, "20260101_000000_aaaaaaaa", "100% done", 1.0).await;
    titled(&db, "20260101_000000_abbbbbbb", "snake_case", 2.0).await;
    titled(&db, "20260202_000000_cccccccc", "snakeXcase", 3.0).await;
    titled(&db, "free_form", "Fix build", 4.0).await;
    titled(&db, "second", "Fix build", 6.0).await;
    titled(&db, "third", "Fix build", 5.0).await;
    titled(&db, "other", "Fix build #x", 9.0).await;
    for (reference, expected) in [
        ("20260101_000000_aaaaaaaa", "20260101_000000_aaaaaaaa"),
        (" 20260101_000000_aaaaaaaa\n", "20260101_000000_aaaaaaaa"),
        ("20260101_000000_aa", "20260101_000000_aaaaaaaa"),
        ("20260202", "20260202_000000_cccccccc"),
        ("free", "free_form"),
        ("100% done", "20260101_000000_aaaaaaaa"),
        ("snake_case", "20260101_000000_abbbbbbb"),
        ("snakeXcase", "20260202_000000_cccccccc"),
        // The newest numbered variant goes before the exact title.
        ("Fix build", "second"),
        ("Fix build #2", "second"),
        ("Fix build #3", "third"),
        ("Fix build #x", "other"),
    ] {
        let found = db.resolve_session(reference).await.unwrap();
        assert_eq!(found.as_str(), expected, "{reference}");
    }
}

#[tokio::test]
async fn a_reference_that_finds_nothing_says_what_is_near() {
    let home = Home::new();
    let db = home.db();
    titled(&db, "20260101_000000_aaaaaaaa", "Fix the build", 1.0).await;
    titled(&db, "20260101_000000_bbbbbbbb", "Other", 2.0).await;
    let error = db.resolve_session("the BUILD").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no session is called `the BUILD` (did you mean 20260101_000000_aaaaaaaa (Fix the build)?); \
         `hermes-cli sessions list` shows them all"
    );
    for unknown in ["%", "_", "2026%", "20260101_000000_a_aaaaaa", "", "  ", "#2", "\u{0}"] {
        let error = db.resolve_session(unknown).await.unwrap_err();
        assert!(matches!(error, ResolveError::NotFound { .. }), "{unknown}: {error}");
    }
    let error = db.resolve_session("20260101").await.unwrap_err();
    let ResolveError::Ambiguous { matches, .. } = &error else { panic!("{error}") };
    assert_eq!(matches.len(), 2);
    assert!(error.to_string().contains("20260101_000000_bbbbbbbb (Other)"), "{error}");
}

#[tokio::test]
async fn a_divided_conversation_is_one() {
    let home = Home::new();
    let db = home.db();
    let parent = titled(&db, "20260101_000000_aaaaaaaa", "Long talk", 1.0).await;
    exchange(&db, &parent, "hello", "hi").await;
    let child = NewSession { parent: Some(parent.clone()), ..new_session("20260101_000001_bbbbbbbb") };
    db.create_session(child.clone()).await.unwrap();
    home.clock.set(2_000.0);
    exchange(&db, &child.id, "go on", "yes").await;
    db.end_session(&parent, "compression").await.unwrap();
    for reference in ["Long talk", parent.as_str(), "20260101"] {
        assert_eq!(db.resolve_session(reference).await.unwrap(), child.id, "{reference}");
    }
    let listed = db.list_sessions(ListFilter::default()).await.unwrap();
    assert_eq!(listed.iter().map(|line| &line.id).collect::<Vec<_>>(), [&child.id]);
    assert_eq!(db.latest_session(None).await.unwrap(), Some(child.id.clone()));
    // The title moves on within the conversation.
    let moved = db.set_title(&child.id, "Long talk", TitleSource::User).await.unwrap();
    assert_eq!(moved, "Long talk");
    assert_eq!(db.load_session(&parent).await.unwrap().unwrap().title, None);
}

#[tokio::test]
async fn titles_are_unique_and_a_persons_title_wins() {
    let home = Home::new();
    let db = home.db();
    let one = session(&db, "one").await;
    let two = session(&db, "two").await;
    assert_eq!(
        db.set_title(&one, "  Fix\u{200b}  the build ", TitleSource::User).await.unwrap(),
        "Fix the build"
    );
    let taken = db.set_title(&two, "Fix the build", TitleSource::User).await.unwrap_err();
    assert_eq!(
        taken.to_string(),
        "the title `Fix the build` is taken by session one (source cli); rename that one first, or choose another title"
    );
    assert!(matches!(
        db.set_title(&two, &"x".repeat(101), TitleSource::User).await,
        Err(TitleError::TooLong { length: 101, max: 100 })
    ));
    // Automatic titles number themselves, and leave a title that stands.
    assert_eq!(db.set_title(&two, "Fix the build", TitleSource::Llm).await.unwrap(), "Fix the build #2");
    assert_eq!(db.set_title(&two, "Better", TitleSource::Llm).await.unwrap(), "Fix the build #2");
    assert_eq!(db.derive_title(&two, "Other words").await.unwrap(), None);
    assert_eq!(db.set_title(&two, "", TitleSource::User).await.unwrap(), "");
    assert_eq!(db.derive_title(&two, "\n  ").await.unwrap(), None);
    assert_eq!(
        db.derive_title(&two, "Fix the build\nplease").await.unwrap().as_deref(),
        Some("Fix the build #2")
    );
    let stored = db.load_session(&two).await.unwrap().unwrap();
    assert_eq!(stored.title_source.as_deref(), Some("derived"));
    assert!(db.set_title(&id("nowhere"), "x", TitleSource::User).await.is_err());
    // A title may be set again on the session that has it.
    db.set_title(&one, "Fix the build", TitleSource::User).await.unwrap();
}

#[tokio::test]
async fn lists_show_conversations_last_active_first() {
    let home = Home::new();
    let db = home.db();
    for (at, (name, source, cwd)) in [
        ("first", "cli", "/work/project"),
        ("second", "telegram", "/work/project/sub"),
        ("third", "cli", "/work/project-b"),
        ("helper", "subagent", "/work/project"),
        ("internal", "tool", "/work/project"),
    ]
    .into_iter()
    .enumerate()
    {
        home.clock.set(1_000.0 + f64::from(u32::try_from(at).unwrap()));
        let new = NewSession { source: source.into(), cwd: Some(cwd.into()), ..new_session(name) };
        db.create_session(new).await.unwrap();
        exchange(&db, &id(name), &format!("  question of\n{name}  {}", "word ".repeat(30)), "answer").await;
    }
    home.clock.set(5_000.0);
    exchange(&db, &id("first"), "later", "yes").await;
    db.derive_title(&id("third"), "Don't panic").await.unwrap();
    let list = async |filter: ListFilter| -> Vec<String> {
        db.list_sessions(filter).await.unwrap().into_iter().map(|line| line.id.to_string()).collect()
    };
    let all = ListFilter::default;
    assert_eq!(list(all()).await, ["first", "third", "second"]);
    assert_eq!(list(ListFilter { source: Some("cli".into()), ..all() }).await, ["first", "third"]);
    assert_eq!(
        list(ListFilter { workspace: Some("/work/project/".into()), ..all() }).await,
        ["first", "second"]
    );
    assert_eq!(list(ListFilter { workspace: Some("/work".into()), ..all() }).await.len(), 3);
    assert_eq!(list(ListFilter { workspace: Some("/".into()), ..all() }).await.len(), 3);
    assert_eq!(list(ListFilter { text: Some("DONT PANIC".into()), ..all() }).await, ["third"]);
    assert_eq!(list(ListFilter { text: Some("seco".into()), ..all() }).await, ["second"]);
    assert_eq!(list(ListFilter { text: Some("%".into()), ..all() }).await, Vec::<String>::new());
    assert_eq!(list(ListFilter { limit: 1, offset: 1, ..all() }).await, ["third"]);
    assert_eq!(list(ListFilter { limit: 0, ..all() }).await, Vec::<String>::new());
    home.raw().execute("UPDATE sessions SET archived = 1 WHERE id = 'first'", []).unwrap();
    assert_eq!(list(all()).await, ["third", "second"]);
    assert_eq!(list(ListFilter { include_archived: true, ..all() }).await.len(), 3);
    assert_eq!(db.latest_session(None).await.unwrap(), Some(id("third")));
    assert_eq!(db.latest_session(Some("telegram")).await.unwrap(), Some(id("second")));
    assert_eq!(db.latest_session(Some("discord")).await.unwrap(), None);

    let line = db.session_summary(&id("first")).await.unwrap().unwrap();
    assert!(line.preview.starts_with("question of first word word") && line.preview.chars().count() <= 60);
    assert_eq!((line.message_count, line.last_active, line.archived), (4, Instant(5_000.0), true));
    assert_eq!(db.session_summary(&id("nowhere")).await.unwrap(), None);
}

#[tokio::test]
async fn lists_go_by_an_index() {
    let home = Home::new();
    let _db = home.db();
    let plan: Vec<String> = home
        .raw()
        .prepare("EXPLAIN QUERY PLAN SELECT id FROM sessions AS s ORDER BY COALESCE(s.last_activity_at, s.started_at) DESC")
        .unwrap()
        .query_map([], |row| row.get(3))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(plan.len(), 1, "{plan:?}");
    assert!(plan[0].contains("idx_sessions_activity"), "{plan:?}");
}

#[tokio::test]
async fn search_understands_words_phrases_and_operators() {
    let home = Home::new();
    let db = home.db();
    let session = titled(&db, "one", "Talk", 1.0).await;
    for (question, answer) in [
        ("how do I fix the build on Tuesday", "run cargo build"),
        ("请帮我修改youer服务的配置", "好的"),
        ("what about config.yaml and snake_case", "see daemon-config"),
        ("Größe und Straße", "unrelated"),
    ] {
        exchange(&db, &session, question, answer).await;
    }
    let (key, _) = turn(&db, &session, "call it").await;
    let mut asks = assistant("");
    asks.tool_calls = vec![call("c", "search_files", "{\"pattern\": \"zebra\"}")];
    let result = Message::tool_result(
        &asks.tool_calls[0],
        format!("quokka {} wombat", "x ".repeat(8_192)),
        Instant(0.0),
    );
    db.write_turn(&key, rows([asks, result])).await.unwrap();

    let found = async |query: &str| -> Vec<String> {
        let hits = db.search(query, 10).await.unwrap();
        hits.iter().map(|hit| hit.snippet.chars().take(30).collect()).collect()
    };
    for (query, hits) in [
        ("build", 2),
        ("fix build", 1),
        ("cargo OR tuesday", 2),
        ("build NOT cargo", 1),
        ("\"the build\"", 1),
        ("\"build the\"", 0),
        ("conf*", 2),
        ("config.yaml", 1),
        ("snake_case", 1),
        ("daemon-config", 1),
        ("grosse", 0),
        ("größe", 1),
        ("修改", 1),
        ("修改 服务", 1),
        ("修改 NOT 服务", 0),
        ("修改 OR build", 3),
        ("务的配", 1),
        // A word glued to CJK is not a word of the index.
        ("youer", 1),
        ("zebra", 1),
        ("search_files", 1),
        // Tool results only when nothing else fits, and only their beginning.
        ("quokka", 1),
        ("unrelated OR quokka", 1),
    ] {
        assert_eq!(found(query).await.len(), hits, "{query}: {:?}", found(query).await);
    }
    let hits = db.search("tuesday", 1).await.unwrap();
    assert_eq!(hits[0].snippet, "how do I fix the build on >>>Tuesday<<<");
    assert_eq!((hits[0].session_id.as_str(), hits[0].title.as_deref()), ("one", Some("Talk")));
    assert_eq!(found("修改").await, ["请帮我>>>修改<<<youer服务的配置"]);
    assert_eq!(db.search("build", 0).await.unwrap(), []);
    assert_eq!(ask::<i64>(&home, "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'wombat'"), 0);
}

#[tokio::test]
async fn flags_do_not_touch_the_index_and_text_does() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    exchange(&db, &session, "needle", "hay").await;
    db.close().await;
    let raw = home.raw();
    let index = || -> Vec<Vec<u8>> {
        raw.prepare("SELECT block FROM messages_fts_data ORDER BY id")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    let before = index();
    raw.execute_batch("UPDATE messages SET active = 0, compacted = 1, observed = 1, display_kind = 'hidden'")
        .unwrap();
    assert_eq!(index(), before);
    raw.execute_batch("UPDATE messages SET content = 'thread' WHERE content = 'needle'").unwrap();
    raw.execute_batch("DELETE FROM messages WHERE content = 'hay'").unwrap();
    let count = |word: &str| -> i64 {
        raw.query_row("SELECT count(*) FROM messages_fts WHERE messages_fts MATCH ?1", [word], |row| {
            row.get(0)
        })
        .unwrap()
    };
    assert_eq!((count("needle"), count("thread"), count("hay")), (0, 1, 0));
    raw.execute_batch("INSERT INTO messages_fts (messages_fts, rank) VALUES ('integrity-check', 1)").unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_text_is_a_legal_query_and_reference(texts in proptest::collection::vec(any_query(), 8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let home = Home::new();
            let options = hermes_state::OpenOptions { inline_writer: true, ..Default::default() };
            let db = home.try_open(&options).unwrap().0;
            let session = session(&db, "one").await;
            for text in &texts {
                exchange(&db, &session, text, "answer").await;
            }
            for text in &texts {
                db.search(text, 5).await.unwrap();
                let reference = db.resolve_session(text).await;
                assert!(!matches!(reference, Err(ResolveError::State(_))));
                db.list_sessions(ListFilter { text: Some(text.clone()), ..ListFilter::default() }).await.unwrap();
                db.derive_title(&session, text).await.unwrap();
            }
        });
    }

    #[test]
    fn every_word_that_was_said_is_found(words in proptest::collection::vec("[a-z0-9]{1,12}", 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let home = Home::new();
            let options = hermes_state::OpenOptions { inline_writer: true, ..Default::default() };
            let db = home.try_open(&options).unwrap().0;
            let session = session(&db, "one").await;
            turn(&db, &session, &words.join(" ")).await;
            for word in words.iter().chain([&words.join(" "), &format!("\"{}\"", words.join(" "))]) {
                assert_eq!(db.search(word, 5).await.unwrap().len(), 1, "{word}");
            }
        });
    }
}

/// Text full of what could mean something to an index.
fn any_query() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        "\\PC{0,8}",
        prop_oneof![
            Just("\""),
            Just("'"),
            Just("*"),
            Just("("),
            Just(")"),
            Just(":"),
            Just("^"),
            Just("+"),
            Just("-"),
            Just(" OR "),
            Just(" AND "),
            Just(" NOT "),
            Just(" NEAR(a b, 2) "),
            Just("content:x"),
            Just("{a b}"),
            Just("修改"),
            Just("カナ"),
            Just("\u{0}"),
            Just("%"),
            Just("_"),
            Just("\\"),
            Just("a"),
            Just("\u{301}"),
        ]
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

#[tokio::test]
async fn very_long_queries_are_legal() {
    let home = Home::new();
    let db = home.db();
    let session = session(&db, "one").await;
    exchange(&db, &session, "a b", "c").await;
    for unit in ["a ", "a OR ", "a NOT b NOT ", "\"a b\" ", "字 ", "字 OR a NOT ", "a* ", "(", "\""] {
        db.search(&unit.repeat(2_000), 5).await.unwrap();
    }
}
