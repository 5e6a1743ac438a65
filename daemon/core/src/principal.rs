//! Who asks (contract §7). A principal travels with every input from `Submit` to tool dispatch.

use std::fmt;

/// The origin of an input, to which rights are bound.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The owner, at one of their own local clients.
    Owner,
    Person {
        platform: String,
        id: String,
    },
    Cron {
        job: String,
    },
    Webhook {
        route: String,
    },
    /// A delegated child of the named session.
    Child {
        of: String,
    },
    /// A remote client, by the id of its token.
    Remote {
        token: String,
    },
}

impl Principal {
    /// Reads what `Display` wrote, as it stands in the database.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let rest = rest.to_owned();
        match kind {
            "owner" if rest.is_empty() => Some(Self::Owner),
            "person" => {
                let (platform, id) = rest.split_once(':')?;
                Some(Self::Person { platform: platform.to_owned(), id: id.to_owned() })
            }
            "cron" => Some(Self::Cron { job: rest }),
            "webhook" => Some(Self::Webhook { route: rest }),
            "child" => Some(Self::Child { of: rest }),
            "remote" => Some(Self::Remote { token: rest }),
            _ => None,
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("owner"),
            Self::Person { platform, id } => write!(f, "person:{platform}:{id}"),
            Self::Cron { job } => write!(f, "cron:{job}"),
            Self::Webhook { route } => write!(f, "webhook:{route}"),
            Self::Child { of } => write!(f, "child:{of}"),
            Self::Remote { token } => write!(f, "remote:{token}"),
        }
    }
}

/// What a connection may do; each scope includes the ones before it (contract §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    Read,
    Chat,
    Approve,
    Admin,
}

impl Scope {
    /// The name used in the scope table, in errors and in the book.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Chat => "chat",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_survive_the_database() {
        let all = [
            Principal::Owner,
            Principal::Person { platform: "telegram".into(), id: "a:b".into() },
            Principal::Cron { job: "j".into() },
            Principal::Webhook { route: "r".into() },
            Principal::Child { of: "s".into() },
            Principal::Remote { token: "t".into() },
        ];
        for principal in all {
            assert_eq!(Principal::parse(&principal.to_string()), Some(principal));
        }
        assert_eq!(Principal::parse("root"), None);
    }

    #[test]
    fn scopes_include_one_another_in_order() {
        assert!(Scope::Read < Scope::Chat && Scope::Chat < Scope::Approve && Scope::Approve < Scope::Admin);
    }
}
