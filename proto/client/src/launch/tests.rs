//! Starts are tried with small scripts in the daemon's place.

use std::fs;

use tokio::net::UnixListener;

use super::*;

struct Scene {
    dir: tempfile::TempDir,
    place: Place,
}

impl Scene {
    /// A home, and a `hermesd` that runs these shell lines.
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("home");
        fs::create_dir_all(root.join("run")).unwrap();
        fs::create_dir_all(root.join("logs")).unwrap();
        let program = dir.path().join(DAEMON);
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let place = Place {
            profile: "work".into(),
            socket: root.join("run/hermesd.sock"),
            daemon_json: root.join("run/daemon.json"),
            gateway_lock: root.join("gateway.lock"),
            agent_log: root.join("logs/agent.log"),
            root,
        };
        Self { dir, place }
    }

    /// This process stands for another daemon that has the profile.
    fn hold(&self) {
        let record = format!(r#"{{"pid": {}, "kind": "hermesd"}}"#, std::process::id());
        fs::write(&self.place.gateway_lock, record).unwrap();
    }

    fn launch(&self) -> Launch {
        Launch { client_exe: Some(self.dir.path().join("hermes-cli")), search_path: None }
    }
}

#[tokio::test]
async fn a_failed_start_shows_the_childs_words_and_the_logs_last_lines() {
    let scene = Scene::new("echo 'config.yaml:3: not a map' >&2; exit 78");
    fs::write(&scene.place.agent_log, "1\n2\n3\n4\n5\n6\n").unwrap();

    let error = scene.launch().start(&scene.place, StartMode::OnDemand).await.unwrap_err();

    assert_eq!(error.to_string(), "hermesd ended while starting (exit status: 78)");
    let details = error.details();
    assert_eq!(details.first().map(String::as_str), Some("config.yaml:3: not a map"));
    assert_eq!(details.iter().skip(2).map(|line| line.trim()).collect::<Vec<_>>(), ["2", "3", "4", "5", "6"]);
    assert!(error.hint().contains("config check"), "{}", error.hint());
}

#[tokio::test]
async fn a_client_that_loses_the_lock_uses_the_winners_daemon() {
    let scene = Scene::new("exit 1");
    let winner = UnixListener::bind(&scene.place.socket).unwrap();
    scene.launch().start(&scene.place, StartMode::OnDemand).await.unwrap();
    drop(winner);
}

#[tokio::test]
async fn a_start_is_tried_again_until_the_holder_of_the_lock_has_left() {
    // The first run finds the lock taken; the second stands for the daemon, whose socket is bound below.
    let scene = Scene::new("cd \"$4\"; [ -e first ] && { touch second; exit 1; }; touch first; exit 1");
    scene.hold();
    let second = scene.place.root.join("second");

    let launch = scene.launch();
    let start = launch.start(&scene.place, StartMode::OnDemand);
    let serve = async {
        while !second.exists() {
            tokio::task::yield_now().await;
        }
        UnixListener::bind(&scene.place.socket).unwrap()
    };
    let (started, _listener) = tokio::join!(start, serve);
    started.unwrap();
}

#[tokio::test]
async fn the_child_is_told_its_home_and_profile_and_is_detached() {
    let scene = Scene::new("cd \"$4\"; echo \"$@\" > args; ps -o sid= -p $$ > sid; echo $$ > pid; exit 1");
    scene.launch().start(&scene.place, StartMode::OnDemand).await.unwrap_err();
    let read = |name: &str| fs::read_to_string(scene.place.root.join(name)).unwrap().trim().to_owned();
    assert_eq!(read("args"), format!("run --on-demand --home {} --profile work", scene.place.root.display()));
    // Where `ps` is missing the file is empty, and there is nothing to compare.
    if !read("sid").is_empty() {
        assert_eq!(read("sid"), read("pid"));
    }
}

#[test]
fn the_daemon_is_sought_beside_the_client_then_in_the_path() {
    let scene = Scene::new("exit 0");
    let beside = scene.launch().find().unwrap();
    assert_eq!(beside, scene.dir.path().join(DAEMON));

    let by_path = Launch {
        client_exe: Some("/nowhere/hermes-cli".into()),
        search_path: Some(format!("relative:{}", scene.dir.path().display()).into()),
    };
    assert_eq!(by_path.find().unwrap(), scene.dir.path().join(DAEMON));
}

#[test]
fn a_missing_program_names_the_folders_that_were_looked_in() {
    let launch = Launch {
        client_exe: Some("/nowhere/hermes-cli".into()),
        search_path: Some("/also/nowhere:/nowhere".into()),
    };
    let error = launch.find().unwrap_err();
    assert_eq!(error.details(), ["looked in /nowhere", "looked in /also/nowhere"]);
}
