//! Several clients on one live session, and clients that come back.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hermes_client::{Connector, NewTurn, SessionWatch, TurnEnd, TurnRun, TurnStep, WatchItem, WatchOptions};
use hermes_proto::v1::{self, event::Payload};
use hermes_tests::{ModelServer, Reply, TestHome, connector};
use pretty_assertions::assert_eq;
use serde_json::json;

async fn new_session(connector: &Connector, cwd: PathBuf) -> (hermes_client::Client, String) {
    let client = connector.ensure().await.unwrap();
    let options =
        v1::SessionOptions { cwd: Some(cwd.display().to_string()), ..v1::SessionOptions::default() };
    let request = v1::CreateSessionRequest { options: Some(options), title: None };
    let detail = client.create_session(request).await.unwrap();
    let id = detail.summary.unwrap().id;
    (client, id)
}

async fn watch(connector: &Connector, id: &str) -> SessionWatch {
    let client = connector.ensure().await.unwrap();
    SessionWatch::attach(connector, client, id, WatchOptions::default()).await.unwrap().0
}

async fn follow(mut run: TurnRun) -> (TurnEnd, SessionWatch) {
    loop {
        if let TurnStep::Ended(end) = run.next().await.unwrap() {
            return (*end, run.into_watch());
        }
    }
}

/// Events by their number, up to the end of a turn.
async fn events_until_complete(watch: &mut SessionWatch) -> BTreeMap<u64, Payload> {
    let mut events = BTreeMap::new();
    loop {
        if let WatchItem::Event(event) = watch.next().await.unwrap() {
            let complete = matches!(event.payload, Some(Payload::MessageComplete(_)));
            if let Some(payload) = event.payload {
                events.insert(event.seq, payload);
            }
            if complete {
                return events;
            }
        }
    }
}

fn reader_server() -> ModelServer {
    ModelServer::start(|request| match request.results_since_user() {
        0..3 => {
            Reply::call("read_file", &json!({ "path": "a.txt", "offset": request.results_since_user() + 1 }))
        }
        _ => Reply::text("all read"),
    })
}

#[tokio::test]
async fn two_clients_of_one_session_see_every_event() {
    let server = reader_server();
    let home = TestHome::with_config(&server.config());
    home.write_file("a.txt", "1\n2\n3\n4\n");
    let connector = connector(&home);
    let (_, id) = new_session(&connector, home.work()).await;
    let mut second = watch(&connector, &id).await;
    let first = watch(&connector, &id).await;
    let mut third = watch(&connector, &id).await;
    let run = TurnRun::submit(first, NewTurn::new("read")).await.unwrap();
    let (ends, seen, also_seen) =
        tokio::join!(follow(run), events_until_complete(&mut second), events_until_complete(&mut third));
    assert_eq!(ends.0.result.text.as_deref(), Some("all read"));
    assert_eq!(seen, also_seen);
    let tools = seen.values().filter(|payload| matches!(payload, Payload::ToolComplete(_))).count();
    assert_eq!(tools, 3);
    let numbers: Vec<u64> = seen.keys().copied().collect();
    let first_number = *numbers.first().unwrap();
    assert_eq!(numbers, (first_number..first_number + numbers.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_same_client_message_id_is_one_turn() {
    let server = ModelServer::start(|_| Reply::text("once"));
    let home = TestHome::with_config(&server.config());
    let connector = connector(&home);
    let (client, id) = new_session(&connector, home.work()).await;
    let request = v1::SubmitRequest {
        session_id: id.clone(),
        text: "hello".into(),
        options: None,
        client_message_id: Some("c-1".into()),
    };
    let mut watcher = watch(&connector, &id).await;
    let first = client.submit(request.clone()).await.unwrap();
    events_until_complete(&mut watcher).await;
    let second = client.submit(request).await.unwrap();
    assert_eq!(first.turn_id, second.turn_id);
    assert_eq!(second.status, "done");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_watcher_comes_back_over_a_daemon_restart_and_misses_no_row() {
    let server = reader_server();
    let home = TestHome::with_config(&server.config());
    home.write_file("a.txt", "1\n2\n3\n4\n");
    let connector = connector(&home);
    let (_, id) = new_session(&connector, home.work()).await;
    let mut watcher = watch(&connector, &id).await;
    let run = TurnRun::submit(watch(&connector, &id).await, NewTurn::new("read")).await.unwrap();
    let (_, other) = follow(run).await;
    drop(other);

    let seen = events_until_complete(&mut watcher).await;
    assert!(!seen.is_empty());
    home.kill_daemon("TERM");
    // Another client starts the daemon again and adds a turn while the watcher is away.
    home.cli(["-r", &id, "-z", "read again"]).success();
    let attachment = loop {
        if let WatchItem::Reattached(attachment) = watcher.next().await.unwrap() {
            break attachment;
        }
    };
    assert!(attachment.restarted && attachment.attached.gap);
    let texts: Vec<&str> = attachment.attached.rows.iter().map(|row| row.content.as_str()).collect();
    assert_eq!(texts.first().copied(), Some("read again"), "rows that were seen are not sent again");
    assert_eq!(texts.last().copied(), Some("all read"));
}

#[tokio::test]
async fn two_inputs_at_once_become_two_turns_in_order() {
    let server = ModelServer::start(|request| {
        let reply = Reply::text(format!("answer to {}", request.last_user()));
        if request.index == 0 { reply.with(|c| c.stall = Some(Duration::from_millis(300))) } else { reply }
    });
    let home = TestHome::with_config(&server.config());
    let connector = connector(&home);
    let (client, id) = new_session(&connector, home.work()).await;
    let mut watcher = watch(&connector, &id).await;
    let submit = |text: &str| v1::SubmitRequest {
        session_id: id.clone(),
        text: text.into(),
        options: Some(v1::TurnOptions { busy_mode: Some("queue".into()), ..v1::TurnOptions::default() }),
        client_message_id: None,
    };
    let first = client.submit(submit("one")).await.unwrap();
    let second = client.submit(submit("two")).await.unwrap();
    assert_eq!((first.status.as_str(), second.status.as_str()), ("streaming", "queued"));
    assert_eq!(second.position, Some(1));
    let mut answers = Vec::new();
    for _ in 0..2 {
        for payload in events_until_complete(&mut watcher).await.into_values() {
            if let Payload::MessageComplete(result) = payload {
                answers.push((result.turn_id, result.text.unwrap_or_default()));
            }
        }
    }
    let expected =
        [(first.turn_id, "answer to one".to_owned()), (second.turn_id, "answer to two".to_owned())];
    assert_eq!(answers, expected);
    server.assert_clean();
}

#[tokio::test]
async fn a_waiting_input_survives_a_killed_daemon() {
    let server = ModelServer::start(|request| {
        let reply = Reply::text(format!("answer to {}", request.last_user()));
        if request.last_user() == "one" {
            reply.with(|c| c.stall = Some(Duration::from_mins(10)))
        } else {
            reply
        }
    });
    let home = TestHome::with_config(&server.config());
    let connector = connector(&home);
    let (client, id) = new_session(&connector, home.work()).await;
    let submit = |text: &str| v1::SubmitRequest {
        session_id: id.clone(),
        text: text.into(),
        options: Some(v1::TurnOptions { busy_mode: Some("queue".into()), ..v1::TurnOptions::default() }),
        client_message_id: None,
    };
    client.submit(submit("one")).await.unwrap();
    client.submit(submit("two")).await.unwrap();
    home.kill_daemon("KILL");
    let mut watcher = watch(&connector, &id).await;
    let answered = |rows: &[v1::Row]| rows.iter().any(|row| row.content == "answer to two");
    loop {
        let shown = home.cli(["sessions", "show", &id, "--json"]).success().json().to_string();
        if shown.contains("answer to two") {
            break;
        }
        let item = watcher.next().await.unwrap();
        if let WatchItem::Reattached(attachment) = &item
            && answered(&attachment.attached.rows)
        {
            break;
        }
    }
    server.assert_clean();
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_and_says_who_did_it() {
    let server =
        ModelServer::start(|_| Reply::text("never").with(|c| c.stall = Some(Duration::from_mins(10))));
    let home = TestHome::with_config(&server.config());
    let connector = connector(&home);
    let (client, id) = new_session(&connector, home.work()).await;
    let run = TurnRun::submit(watch(&connector, &id).await, NewTurn::new("hello")).await.unwrap();
    server.wait_for_requests(1);
    let request = v1::InterruptRequest { session_id: id, turn_id: None };
    assert_eq!(client.interrupt(request).await.unwrap().status, "interrupted");
    let (end, _) = follow(run).await;
    assert_eq!(end.result.status, "interrupted");
    assert_eq!(end.result.interrupt_cause.as_deref(), Some("user_stop"));
}

#[tokio::test]
async fn options_that_are_not_acted_on_are_refused_and_not_passed_over() {
    let home = TestHome::new();
    let client = connector(&home).ensure().await.unwrap();
    let options = v1::SessionOptions { persist: Some(false), ..v1::SessionOptions::default() };
    let request = v1::CreateSessionRequest { options: Some(options), title: None };
    let refused = client.create_session(request).await.unwrap_err();
    assert!(refused.to_string().contains("options.persist"), "{refused}");
}
