//! What people have allowed survives the daemon.

mod kit;

use hermes_core::{Instant, Json};
use hermes_state::{AcceptedPolicy, StandingApproval};
use kit::Home;
use pretty_assertions::assert_eq;
use serde_json::json;

fn approval(id: &str, shape: &str, at: f64) -> StandingApproval {
    StandingApproval { id: id.into(), rule: "delete".into(), shape: shape.into(), granted_at: Instant(at) }
}

#[tokio::test]
async fn a_standing_approval_is_kept_once_for_the_same_thing() {
    let home = Home::new();
    let db = home.db();
    db.save_approval(approval("a", "rm -r x", 1.0)).await.unwrap();
    db.save_approval(approval("b", "rm -r y", 2.0)).await.unwrap();
    db.save_approval(approval("c", "rm -r x", 3.0)).await.unwrap();
    db.close().await;
    let db = home.db();
    let kept = db.standing_approvals().await.unwrap();
    assert_eq!(kept, [approval("b", "rm -r y", 2.0), approval("c", "rm -r x", 3.0)]);
    assert!(db.remove_approval("b").await.unwrap());
    assert!(!db.remove_approval("b").await.unwrap());
    assert_eq!(db.standing_approvals().await.unwrap().len(), 1);
    db.close().await;
}

#[tokio::test]
async fn accepted_policy_is_replaced_whole_and_knows_absence() {
    let home = Home::new();
    let db = home.db();
    assert_eq!(db.accepted_policy().await.unwrap(), AcceptedPolicy::new());
    let first: AcceptedPolicy =
        [("approvals.mode".to_owned(), Some(Json::from(json!("manual")))), ("hooks".to_owned(), None)].into();
    db.accept_policy(first.clone()).await.unwrap();
    assert_eq!(db.accepted_policy().await.unwrap(), first);
    let second: AcceptedPolicy = [("command_allowlist".to_owned(), Some(Json::from(json!(["ls"]))))].into();
    db.accept_policy(second.clone()).await.unwrap();
    db.close().await;
    let db = home.db();
    assert_eq!(db.accepted_policy().await.unwrap(), second);
    db.close().await;
}
