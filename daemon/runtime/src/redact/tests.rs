//! What is masked, what must survive, and the properties that hold for any text.

use std::sync::LazyLock;

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

fn plain() -> Redactor {
    Redactor::new(true, &SecretScope::empty())
}

fn shown(text: &str) -> String {
    plain().redact(text).into_owned()
}

const HEX: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn issuers_prefixes_give_tokens_away() {
    for prefix in [
        "sk-",
        "sk-ant-api03-",
        "sk-proj-",
        "ghp_",
        "github_pat_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "xoxb-",
        "xoxp-",
        "xapp-",
        "AIza",
        "pplx-",
        "fal_",
        "fc-",
        "bb_live_",
        "gAAAA",
        "sk_live_",
        "sk_test_",
        "rk_live_",
        "SG.",
        "hf_",
        "r8_",
        "npm_",
        "pypi-",
        "dop_v1_",
        "doo_v1_",
        "tvly-",
        "exa_",
        "gsk_",
        "syt_",
        "mem0_",
        "xai-",
        "ntn_",
        "fw_",
    ] {
        let text = format!("before {prefix}{HEX}, after");
        let token = format!("{prefix}{HEX}");
        let head: String = token.chars().take(6).collect();
        assert_eq!(shown(&text), format!("before {head}...cdef, after"), "{prefix}");
    }
    assert_eq!(shown("AKIAIOSFODNN7EXAMPLE"), "AKIAIO...MPLE");
    assert_eq!(shown("key sk-abcdefghijklmnopqrstuvwxyz."), "key sk-abc...wxyz.");
    let jwt = format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{HEX}");
    assert_eq!(shown(&format!("jwt {jwt}")), "jwt eyJhbG...cdef");
}

#[test]
fn names_that_only_begin_like_a_token_survive() {
    for text in [
        "task-assessment-report risk-sk-circle-fade-dot sk-circle-fade-dot sk-fading-circle12",
        "npm_config_registry npm_package_version hf_hub_download fal_client_subscribe exa_search_results",
        "fc-barcelona2024 fw-normal-weight xai-grok-models pplx-70b-online pypi-simple-index",
        "SG.compute_gradient_descent AKIAlower ghp_short eyJust a word eyJhbGciOi.not.jwt",
        "the key idea, a token of thanks, secret garden, password manager",
    ] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn short_secrets_are_masked_whole_and_long_ones_keep_their_ends() {
    assert_eq!(shown("DB_PASSWORD=hunter2"), "DB_PASSWORD=***");
    assert_eq!(shown("DB_PASSWORD=correct-horse-battery"), "DB_PASSWORD=correc...tery");
}

#[test]
fn environment_dumps_are_masked() {
    for (text, expected) in [
        ("export API_TOKEN=abc123def", "export API_TOKEN=***"),
        ("A=1\nMY_SECRET=s3cretvalue\nPATH=/usr/bin", "A=1\nMY_SECRET=***\nPATH=/usr/bin"),
        ("DB_PASSWORD=letmein", "DB_PASSWORD=***"),
        ("SMTP_PASS='let me in'", "SMTP_PASS='***'"),
        (
            "AWS_SECRET_ACCESS_KEY=\"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\"",
            "AWS_SECRET_ACCESS_KEY=\"wJalrX...EKEY\"",
        ),
        ("docker run -e API_KEY=abcdef12 img", "docker run -e API_KEY=*** img"),
    ] {
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn config_files_are_masked_and_stay_valid() {
    for (text, expected) in [
        (r#"{"api_key": "a1b2c3d4e5", "n": 1}"#, r#"{"api_key": "***", "n": 1}"#),
        (r#"{"clientSecret":"Zx9-Yw8_Vu7t6s5r4q3p","b":[]}"#, r#"{"clientSecret":"Zx9-Yw...4q3p","b":[]}"#),
        ("password: hunter2x  # mine\nuser: me\n", "password: ***  # mine\nuser: me\n"),
        ("db:\n  password: 's3cr3t!!'\n", "db:\n  password: '***'\n"),
        ("token = \"abc123abc123\"\n", "token = \"***\"\n"),
        ("spring.datasource.password=hunter2x\n", "spring.datasource.password=***\n"),
        ("Server=db;Password=hunter2x;Timeout=3", "Server=db;Password=***;Timeout=3"),
    ] {
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn headers_urls_and_bot_tokens_are_masked() {
    for (text, expected) in [
        ("Authorization: Bearer abcdef1234567890", "Authorization: Bearer ***"),
        ("curl -H \"Authorization: Basic dXNlcjpwYXNz\" x", "curl -H \"Authorization: Basic ***\" x"),
        ("Proxy-Authorization: Basic dXNlcjpwYXNz", "Proxy-Authorization: Basic ***"),
        ("redis://:s3cretpw@localhost:6379/0", "redis://:***@localhost:6379/0"),
        ("'authorization': 'token abc123456'", "'authorization': 'token ***'"),
        ("x-api-key: 0a1b2c3d4e5f\r\nhost: x", "x-api-key: ***\r\nhost: x"),
        ("-H 'X-Auth-Token: 0a1b2c3d4e5f'", "-H 'X-Auth-Token: ***'"),
        ("postgres://app:s3cret@db:5432/x", "postgres://app:***@db:5432/x"),
        ("https://x-access-token:abc@github.com/a/b", "https://x-access-token:***@github.com/a/b"),
        ("https://0123456789abcdef0123@host/", "https://012345...0123@host/"),
        ("https://h/p?access_token=abc123def&x=1#f", "https://h/p?access_token=***&x=1#f"),
        ("grant=1&client_secret=abc123def", "grant=1&client_secret=***"),
        (
            "bot123456789:AAF0123456789abcdefghijklmnopqrstuv ok",
            "bot123456789:AAF0123456789abcdefghijklmnopqrstuv ok",
        ),
        ("bot 123456789:AAF0123456789abcdefghijklmnopqrstuv ok", "bot 123456...stuv ok"),
    ] {
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn private_keys_lose_their_lines_but_not_their_number() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\nAgEAAoIBAQC7VJTUt9Us8cKj\n";
    let key = format!("a\n-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\nz\n");
    let masked = "a\n-----BEGIN RSA PRIVATE KEY-----\n***\n***\n-----END RSA PRIVATE KEY-----\nz\n";
    assert_eq!(shown(&key), masked);
    let json = serde_json::json!({"k": key}).to_string();
    assert_eq!(shown(&json), serde_json::json!({"k": masked}).to_string());
    // The reader got only the beginning, or only the end.
    assert_eq!(
        shown(&format!("-----BEGIN PRIVATE KEY-----\n{body}")),
        "-----BEGIN PRIVATE KEY-----\n***\n***\n"
    );
    assert_eq!(
        shown(&format!("x y\n{body}-----END PRIVATE KEY-----\n")),
        "x y\n***\n***\n-----END PRIVATE KEY-----\n"
    );
    let numbered = "1|-----BEGIN PRIVATE KEY-----\n2|MIIEvQIBADANBgkqhkiG9w0B\n3|-----END PRIVATE KEY-----";
    assert_eq!(shown(numbered), "1|-----BEGIN PRIVATE KEY-----\n2|***\n3|-----END PRIVATE KEY-----");
    assert_eq!(
        shown("-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0B\n"),
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0B\n"
    );
}

#[test]
fn text_inside_json_is_seen_through_its_escapes() {
    let dump =
        "A=1\nOPENAI_API_KEY=sk-abcdefabcdef123456\nDB_PASSWORD=hunter2\n{\"api_key\": \"a1b2c3d4e5f6\"}";
    let masked = "A=1\nOPENAI_API_KEY=sk-abc...3456\nDB_PASSWORD=***\n{\"api_key\": \"***\"}";
    let json = |text: &str| serde_json::json!({ "output": text }).to_string();
    assert_eq!(shown(&json(dump)), json(masked));
}

#[test]
fn hashes_and_public_keys_survive() {
    for text in [
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "commit 235155e9c8d7f6a5b4c3d2e1f0a9b8c7d6e5f4a3",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7VJTUt9Us8cKj user@host",
        "public_key: abcdef123456\ntotal_tokens=99999 TOKEN_LIMIT=4096",
        "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
    ] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn code_survives() {
    let code = r#"
        let token = self.next_token(); let api_key: Option<String> = None;
        pub struct Login { pub password: String, pub token: Uint8Array, secret: Sha256Digest }
        api_key = os.environ["OPENAI_API_KEY"]; apiKey: process.env.API_KEY,
        password = getpass("Password: "); if password == other.password { return Token::new(1) }
        API_KEY=$OPENAI_API_KEY; TOKEN="$(cat token.txt)" PASSWORD=${PASSWORD:-} SECRET={{ secret }}
        def f(token=None, password=password, api_key: str = "", max_tokens=4096, next_page_token="abc123def456"):
        "token": "string", "password": "Passwort", "api_key": "OPENAI_API_KEY", "secret": "my-app-secret",
        "key_env": "OPENAI_API_KEY", primary_key=True, PRIMARY_KEY=user_id1, SORT_KEY=created_at2, cache_key: v123abc,
        Authorization: required; headers["Authorization"] = f"Bearer {token}"; "Bearer " + token; bearer token
        PWD=/home/u/project1 OLDPWD=/home/u/project2 SSH_KEY=/home/u/.ssh/id_ed25519 KEY=1 TOKEN=TOKEN_NAME
        token: auth.login.token.label, password_file: /run/secrets/db1, credentials: include, tokenizer: gpt2tok
        https://example.com:8080/path@v1.2.3 git@github.com:a/b.git http://user:$PASS@h/ mailto:a@b.c ssh://git@h/x
        12345678:short time 12:34:56 ratio 1234567890:1 keyboard: qwerty123 passwords: many monkey=banana42
    "#;
    assert_eq!(shown(code), code);
}

#[test]
fn what_is_masked_stays_as_it_is() {
    for text in ["PASSWORD=*** api_key: \"sk-abc...wxyz\"", "token=«redacted:sk-…»", "password: ***"] {
        assert_eq!(shown(text), text);
        assert_eq!(plain().redact_file_content(text), (Cow::Borrowed(text), 0));
    }
}

#[test]
fn values_of_the_scope_are_masked_wherever_they_stand() {
    let scope = SecretScope::from_pairs([
        ("SERVICE_KEY", "plain text with 1 \"quote\" in it"),
        ("DB_PASSWORD", "korrekt"),
        ("LOCAL_KEY", "ollama"),
    ]);
    let redactor = Redactor::new(true, &scope).with_secret(&Secret::from("from-settings-1"));
    let secret = "plain text with 1 \"quote\" in it";
    assert_eq!(redactor.redact(&format!("x{secret}y")), "xplain ...n ity");
    let json = serde_json::json!({ "a": secret }).to_string();
    assert_eq!(redactor.redact(&json), r#"{"a":"***"}"#);
    assert_eq!(redactor.redact("q=plain%20text%20with%201%20%22quote%22%20in%20it&"), "q=plain%...20it&");
    assert_eq!(redactor.redact("korrekt (korrekt) unkorrektes ollama"), "*** (***) unkorrektes ollama");
    assert_eq!(redactor.redact("a from-settings-1 b"), "a *** b");
}

#[test]
fn file_content_gets_markers_that_cannot_be_used() {
    let text = format!("OPENAI_API_KEY=sk-ant-{HEX}\nDB_PASSWORD=hunter2\nplain\n");
    let (content, count) = plain().redact_file_content(&text).clone();
    assert_eq!(content, "OPENAI_API_KEY=«redacted:sk-ant-…»\nDB_PASSWORD=«redacted:password…»\nplain\n");
    assert_eq!(count, 2);
    assert!(Redactor::contains_marker(&content) && !Redactor::contains_marker(&text));
}

#[test]
fn prefixes_of_the_user_count() {
    let redactor = plain().with_prefixes(&["acme_".to_owned(), "  ".to_owned()]);
    assert_eq!(redactor.redact("acme_abcdefghijkl and acme_short"), "*** and acme_short");
}

#[test]
fn switched_off_it_leaves_everything() {
    let scope = SecretScope::from_pairs([("API_KEY", "abcdefgh12345678")]);
    let text = "API_KEY=abcdefgh12345678";
    assert!(matches!(Redactor::new(false, &scope).redact(text), Cow::Borrowed(_)));
    assert_eq!(
        format!("{:?}", Redactor::new(true, &scope)),
        "Redactor { enabled: true, known_values: 1, .. }"
    );
}

/// Texts in which secrets of all kinds stand beside each other, whole and cut.
fn secretive() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("sk-ant-0123456789abcdef".to_owned()),
        Just("ghp_abcdefghij0123456789".to_owned()),
        Just("SCOPED-secret-01".to_owned()),
        Just("API_KEY=".to_owned()),
        Just("\"password\": \"".to_owned()),
        Just("token=".to_owned()),
        Just("Authorization: Bearer ".to_owned()),
        Just("postgres://u:pa55word@h ".to_owned()),
        Just("-----BEGIN PRIVATE KEY-----\n".to_owned()),
        Just("MIIEvQIBADANBgkqhkiG9w0BAQEF\n".to_owned()),
        Just("-----END PRIVATE KEY-----\n".to_owned()),
        Just("eyJhbGciOiJI.eyJzdWIiOiI.SflKxwRJSM".to_owned()),
        Just("123456789:AAF0123456789abcdefghijklmnopqrstuv".to_owned()),
        Just("«redacted:sk-…»".to_owned()),
        Just("\"".to_owned()),
        Just("\\n".to_owned()),
        Just("\n".to_owned()),
        "[a-zA-Z0-9 .=:&?/@_-]{0,12}",
        "\\PC{0,4}",
    ];
    proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

fn scoped() -> Redactor {
    static SCOPED: LazyLock<Redactor> = LazyLock::new(|| {
        let scope = SecretScope::from_pairs([("S_KEY", "SCOPED-secret-01"), ("P_PASSWORD", "pa55word")]);
        Redactor::new(true, &scope)
    });
    SCOPED.clone()
}

proptest! {
    #[test]
    fn doing_it_twice_changes_nothing_more(text in secretive()) {
        let redactor = scoped();
        let once = redactor.redact(&text).into_owned();
        prop_assert_eq!(redactor.redact(&once), &*once);
        let (marked, _) = redactor.redact_file_content(&text);
        let again = redactor.redact_file_content(&marked);
        prop_assert_eq!(again, (Cow::Borrowed(&*marked), 0));
    }

    #[test]
    fn text_without_secrets_is_never_touched(text in "([a-z]{1,9}|[ \n\t.,;(){}\\[\\]<>+*/'\"-]|[0-9]{1,5}|[äß漢]){0,60}") {
        let redactor = scoped();
        prop_assert!(matches!(redactor.redact(&text), Cow::Borrowed(_)));
        prop_assert_eq!(redactor.redact_file_content(&text).1, 0);
    }

    #[test]
    fn a_secret_of_the_scope_never_survives(text in secretive(), at in 0usize..200) {
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.min(chars.len());
        chars.splice(at..at, "SCOPED-secret-01".chars());
        let text: String = chars.into_iter().collect();
        prop_assert!(!scoped().redact(&text).contains("SCOPED-secret-01"));
        prop_assert!(!scoped().redact_file_content(&text).0.contains("SCOPED-secret-01"));
    }

    #[test]
    fn lines_and_quotes_stay_in_number(text in secretive()) {
        let count = |text: &str, sign: char| text.matches(sign).count();
        let redacted = scoped().redact(&text).into_owned();
        for sign in ['\n', '"', '\''] {
            prop_assert_eq!(count(&redacted, sign), count(&text, sign), "{:?}", sign);
        }
    }

    #[test]
    fn json_stays_json(text in secretive()) {
        let json = serde_json::json!({ "content": text, "password": "pa55word\\n\"x" }).to_string();
        let redacted = scoped().redact(&json).into_owned();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&redacted).is_ok(), "{}", redacted);
    }
}
