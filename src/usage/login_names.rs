//! Who is behind user names on clusters that belong to nobody in the portal: a PI names them, and user names with the same
//! name are one person in every figure.

use std::collections::{BTreeMap, HashMap};

use super::group_usage::GroupUsage;
use super::service::UsageService;
use super::totals::hours;
use crate::auth::activity::{ActivityEventKind, Actor};
use crate::auth::{AuthError, Viewer};
use crate::domain::{ClusterId, DisplayName, GroupId};
use crate::store;
use crate::store::usage_login_names::StoredLoginName;

/// A group names at most this many user names.
const MAX_NAMED: usize = 500;

/// A user name on a cluster.
pub type ClusterLogin = (ClusterId, String);

/// The names that a group's PIs gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginNames {
    names: HashMap<ClusterLogin, String>,
    /// The user names of each named person; the first one stands for all.
    people: BTreeMap<String, Vec<ClusterLogin>>,
}

impl LoginNames {
    pub fn new(rows: Vec<StoredLoginName>) -> Self {
        let mut all = Self::default();
        for StoredLoginName { cluster_id, login, name } in rows {
            let login = (cluster_id, login);
            all.people.entry(name.clone()).or_default().push(login.clone());
            all.names.insert(login, name);
        }
        all
    }

    /// The name that was given; none if it has none.
    pub fn name(&self, login: &ClusterLogin) -> Option<&str> {
        self.names.get(login).map(String::as_str)
    }

    /// The user name that stands for all of the same person.
    pub fn representative(&self, login: ClusterLogin) -> ClusterLogin {
        let all = self.names.get(&login).and_then(|name| self.people.get(name));
        all.and_then(|all| all.first().cloned()).unwrap_or(login)
    }

    /// All user names of the same person, this one included.
    pub fn same_person(&self, login: &ClusterLogin) -> Vec<ClusterLogin> {
        let all = self.names.get(login).and_then(|name| self.people.get(name));
        all.cloned().unwrap_or_else(|| vec![login.clone()])
    }
}

/// A user name that belongs to nobody in the group.
#[derive(Debug, Clone, PartialEq)]
pub struct UnlinkedLogin {
    pub cluster: ClusterId,
    pub slug: String,
    pub cluster_title: String,
    pub login: String,
    /// The name that a PI gave; empty for none.
    pub name: String,
    /// All core hours that were read.
    pub core_hours: f64,
}

impl GroupUsage {
    /// The name behind a user name: a member's, or the one that a PI gave.
    pub fn known_name(&self, cluster: ClusterId, user: &str) -> Option<&str> {
        let login = (cluster, user.to_owned());
        let member = self.people.get(&login).map(|person| person.name.as_str());
        member.or_else(|| self.logins.name(&login))
    }

    /// The user names of which nobody in the group is the owner, highest usage first. None for anyone but PIs.
    pub fn unlinked_logins(&self) -> Vec<UnlinkedLogin> {
        let mut seconds: BTreeMap<(&str, &str), (u64, &str, ClusterId)> = BTreeMap::new();
        for account in self.accounts.iter().filter(|_| self.is_leader) {
            let facts = &account.details;
            for row in account.usage.iter().flat_map(|usage| usage.days.values()).flat_map(|day| day.rows.iter()) {
                let is_linked = self.people.contains_key(&(facts.cluster, row.user.to_string()));
                if !row.user.is_empty() && !is_linked && facts.own_user.as_deref() != Some(&*row.user) {
                    let entry = seconds.entry((&facts.slug, &row.user));
                    entry.or_insert((0, &facts.title, facts.cluster)).0 += row.totals.core_s;
                }
            }
        }
        let unlinked =
            |((slug, login), (used, title, cluster)): ((&str, &str), (u64, &str, ClusterId))| UnlinkedLogin {
                cluster,
                slug: slug.to_owned(),
                cluster_title: title.to_owned(),
                name: self.logins.name(&(cluster, login.to_owned())).unwrap_or_default().to_owned(),
                login: login.to_owned(),
                core_hours: hours(used),
            };
        let mut all: Vec<UnlinkedLogin> = seconds.into_iter().map(unlinked).collect();
        all.sort_by(|a, b| b.core_hours.total_cmp(&a.core_hours));
        all
    }
}

#[derive(Debug, thiserror::Error)]
pub enum NameLoginError {
    #[error("The group has named the maximum number of user names. Clear some first.")]
    TooMany,
    /// Not allowed, gone, or an internal error.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl UsageService {
    /// Names the person behind a user name that appears in the group's figures, or clears the name.
    pub async fn set_login_name(
        &self,
        actor: &Actor,
        viewer: &Viewer,
        group: GroupId,
        (slug, login): (&str, &str),
        name: Option<&DisplayName>,
    ) -> Result<(), NameLoginError> {
        let view = self.load_group_usage(viewer, group).await.map_err(AuthError::from)?;
        let unlinked = view.unlinked_logins();
        let known = unlinked.into_iter().find(|known| known.slug == slug && known.login == login);
        let known = known.ok_or(AuthError::NotFound)?;
        let (mut tx, row) = self.begin_change(actor, group).await?;
        let named = store::usage_login_names::list(&mut tx, group).await.map_err(AuthError::from)?;
        let is_it = |one: &StoredLoginName| one.cluster_id == known.cluster && one.login == known.login;
        if name.is_some() && named.len() >= MAX_NAMED && !named.iter().any(is_it) {
            return Err(NameLoginError::TooMany);
        }
        let saved = match name {
            Some(name) => {
                store::usage_login_names::set(&mut tx, group, known.cluster, &known.login, name.as_str()).await
            }
            None => store::usage_login_names::remove(&mut tx, group, known.cluster, &known.login).await,
        };
        saved.map_err(AuthError::from)?;
        let is_named = name.map_or_else(|| "no name".to_owned(), |name| name.as_str().to_owned());
        let detail = format!("{} on {}: {is_named}", super::report::clean_name(&known.login), known.cluster_title);
        let committed = self.commit_change(tx, actor, ActivityEventKind::LoginNamed, &row, &detail).await;
        Ok(committed.map_err(AuthError::from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_is_one_person() {
        let row = |cluster: i64, login: &str, name: &str| StoredLoginName {
            cluster_id: ClusterId(cluster),
            login: login.into(),
            name: name.into(),
        };
        let names = LoginNames::new(vec![
            row(1, "erik", "Erik Berg"),
            row(1, "eberg", "Erik Berg"),
            row(2, "erik", "Erik Berg"),
            row(2, "eva", "Eva"),
        ]);
        let login = |cluster: i64, login: &str| (ClusterId(cluster), login.to_owned());
        for other in [login(1, "erik"), login(1, "eberg"), login(2, "erik")] {
            assert_eq!(names.representative(other.clone()), login(1, "erik"));
            assert_eq!(names.same_person(&other).len(), 3);
            assert_eq!(names.name(&other), Some("Erik Berg"));
        }
        assert_eq!(names.representative(login(2, "eva")), login(2, "eva"));
        let stranger = login(9, "erik");
        assert_eq!((names.name(&stranger), names.same_person(&stranger).len()), (None, 1));
        assert_eq!(names.representative(stranger.clone()), stranger);
    }
}
