//! Which home is chosen, and what is said when none can be.

use std::os::unix::fs::PermissionsExt as _;

use pretty_assertions::assert_eq;

use super::*;

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join(".hermes")
    }

    fn with_profile(self, name: &str) -> Self {
        fs::create_dir_all(self.root().join("profiles").join(name)).unwrap();
        self
    }

    fn with_active(self, text: &str) -> Self {
        fs::create_dir_all(self.root()).unwrap();
        fs::write(self.root().join("active_profile"), text).unwrap();
        self
    }

    fn resolve(&self, profile: Option<&str>, hermes_home: Option<&Path>) -> Result<Home, HomeError> {
        Home::resolve(&HomeInput {
            profile,
            hermes_home: hermes_home.map(Path::as_os_str),
            user_home: Some(self.folder.path()),
        })
    }
}

#[test]
fn without_anything_the_root_is_the_default_profile() {
    let world = World::new();
    let home = world.resolve(None, None).unwrap();
    assert_eq!((home.dir(), home.root()), (world.root().as_path(), world.root().as_path()));
    assert!(!home.is_named());
    assert!(!world.root().exists(), "resolving creates nothing");
}

#[test]
fn the_flag_wins_over_everything() {
    let world = World::new().with_profile("work").with_profile("play").with_active("play\n");
    let shaped = world.root().join("profiles/play");
    for hermes_home in [None, Some(world.root()), Some(shaped)] {
        let home = world.resolve(Some("work"), hermes_home.as_deref()).unwrap();
        assert_eq!(home.dir(), world.root().join("profiles/work"));
        assert_eq!(home.root(), world.root());
    }
    assert_eq!(world.resolve(Some("default"), None).unwrap().dir(), world.root());
}

#[test]
fn a_profile_shaped_home_is_kept_and_the_active_file_comes_after_it() {
    let world = World::new().with_profile("work").with_profile("play").with_active("play");
    let home = world.resolve(None, Some(&world.root().join("profiles/work/"))).unwrap();
    assert_eq!((home.profile().as_str(), home.root()), ("work", world.root().as_path()));
    assert_eq!(world.resolve(None, None).unwrap().profile().as_str(), "play");
    assert_eq!(world.resolve(None, Some(&world.root())).unwrap().profile().as_str(), "play");
}

#[test]
fn a_home_elsewhere_has_its_own_profiles() {
    let world = World::new();
    let elsewhere = world.folder.path().join("elsewhere");
    let home = world.resolve(None, Some(&elsewhere)).unwrap();
    assert_eq!((home.dir(), home.is_named()), (elsewhere.as_path(), false));
}

#[test]
fn a_tilde_is_expanded_and_a_relative_home_refused() {
    let world = World::new();
    assert_eq!(world.resolve(None, Some(Path::new("~/x"))).unwrap().dir(), world.folder.path().join("x"));
    assert_eq!(world.resolve(None, Some(Path::new(""))).unwrap().dir(), world.root(), "empty is unset");
    assert!(matches!(world.resolve(None, Some(Path::new("x/y"))), Err(HomeError::NotAbsolute { .. })));
}

#[test]
fn an_unknown_profile_lists_those_that_exist() {
    let world = World::new().with_profile("work").with_profile("play");
    let error = world.resolve(Some("wrok"), None).unwrap_err();
    assert!(error.to_string().ends_with("(profiles: default, play, work)"), "{error}");
    let folder = world.root().join("profiles/wrok");
    assert_eq!(error.hint(), format!("make it with `mkdir -p -m 700 {}`", folder.display()));
}

#[test]
fn an_invalid_profile_name_is_an_error_that_tells_the_rule() {
    let error = World::new().resolve(Some("My Work"), None).unwrap_err();
    assert!(error.to_string().contains("1 to 64 lower-case letters"), "{error}");
}

#[test]
fn an_active_file_that_is_no_help_is_named() {
    let world = World::new().with_active("Not A Name");
    let error = world.resolve(None, None).unwrap_err();
    assert!(error.to_string().contains("active_profile does not name a profile"), "{error}");

    let world = World::new().with_active("gone");
    let error = world.resolve(None, None).unwrap_err();
    assert!(error.hint().contains("active_profile"), "{}", error.hint());
    world.resolve(Some("default"), None).unwrap();
}

#[test]
fn a_home_that_is_a_file_or_lies_below_one_is_named() {
    let world = World::new();
    fs::write(world.root(), "x").unwrap();
    let error = world.resolve(None, None).unwrap_err();
    assert_eq!(error.to_string(), format!("{} is not a folder", world.root().display()));
    let below = world.resolve(None, Some(&world.root().join("deep"))).unwrap_err();
    assert!(matches!(below, HomeError::NotAFolder { .. }), "{below}");
    let failed = Home::at(world.root()).ensure().unwrap_err();
    assert!(matches!(failed, HomeError::Create { .. }), "{failed}");
}

#[test]
fn an_unreadable_home_is_named_with_a_way_out() {
    let world = World::new();
    fs::create_dir(world.root()).unwrap();
    fs::set_permissions(world.root(), fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser reads everything; there is nothing to refuse then.
    let readable = fs::read_dir(world.root()).is_ok();
    let resolved = world.resolve(None, None);
    fs::set_permissions(world.root(), fs::Permissions::from_mode(0o700)).unwrap();
    match resolved {
        Ok(_) => assert!(readable),
        Err(error) => {
            assert!(error.to_string().starts_with("cannot read "), "{error}");
            assert!(error.hint().contains("HERMES_HOME"));
        }
    }
}

#[test]
fn without_any_home_the_message_says_what_to_set() {
    let error = Home::resolve(&HomeInput::default()).unwrap_err();
    assert!(error.to_string().contains("HERMES_HOME"), "{error}");
}

#[test]
fn the_layout_is_made_private_and_old_modes_are_kept() {
    let world = World::new();
    fs::create_dir_all(world.root().join("logs")).unwrap();
    fs::set_permissions(world.root().join("logs"), fs::Permissions::from_mode(0o755)).unwrap();
    let home = world.resolve(None, None).unwrap();
    home.ensure().unwrap();
    home.ensure().unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.run_dir()), 0o700);
    assert_eq!(mode(home.memories_dir()), 0o700);
    assert_eq!(mode(home.logs_dir()), 0o755);

    let fresh = Home::at(world.folder.path().join("fresh"));
    fresh.ensure().unwrap();
    assert_eq!(mode(fresh.dir().to_owned()), 0o700);
}

#[test]
fn every_spelling_of_a_home_has_the_same_socket() {
    let world = World::new();
    let home = world.resolve(None, None).unwrap();
    home.ensure().unwrap();
    let link = world.folder.path().join("link");
    std::os::unix::fs::symlink(world.root(), &link).unwrap();
    let env = SocketEnv { xdg_runtime_dir: None, temp_dir: PathBuf::from("/tmp"), uid: 1 };
    assert_eq!(Home::at(link).socket(&env), home.socket(&env));
}
