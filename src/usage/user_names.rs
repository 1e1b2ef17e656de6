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
use crate::store::usage_user_names::StoredUserName;

/// A group names at most this many user names.
const MAX_NAMED: usize = 500;

/// A user name on a cluster.
pub type ClusterUserName = (ClusterId, String);

/// The names that a group's PIs gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserNames {
    names: HashMap<ClusterUserName, String>,
    /// The user names of each named person; the first one stands for all.
    people: BTreeMap<String, Vec<ClusterUserName>>,
}

impl UserNames {
    pub fn new(rows: Vec<StoredUserName>) -> Self {
        let mut all = Self::default();
        for StoredUserName { cluster_id, user_name, name } in rows {
            let user_name = (cluster_id, user_name);
            all.people.entry(name.clone()).or_default().push(user_name.clone());
            all.names.insert(user_name, name);
        }
        all
    }

    /// The name that was given; none if it has none.
    pub fn name(&self, user_name: &ClusterUserName) -> Option<&str> {
        self.names.get(user_name).map(String::as_str)
    }

    /// The user name that stands for all of the same person.
    pub fn representative(&self, user_name: ClusterUserName) -> ClusterUserName {
        let all = self.names.get(&user_name).and_then(|name| self.people.get(name));
        all.and_then(|all| all.first().cloned()).unwrap_or(user_name)
    }

    /// All user names of the same person, this one included.
    pub fn same_person(&self, user_name: &ClusterUserName) -> Vec<ClusterUserName> {
        let all = self.names.get(user_name).and_then(|name| self.people.get(name));
        all.cloned().unwrap_or_else(|| vec![user_name.clone()])
    }
}

/// A user name that belongs to nobody in the group.
#[derive(Debug, Clone, PartialEq)]
pub struct UnlinkedUserName {
    pub cluster: ClusterId,
    pub slug: String,
    pub cluster_title: String,
    pub user_name: String,
    /// The name that a PI gave; empty for none.
    pub name: String,
    /// All core hours that were read.
    pub core_hours: f64,
}

impl GroupUsage {
    /// The name behind a user name: a member's, or the one that a PI gave.
    pub fn known_name(&self, cluster: ClusterId, user: &str) -> Option<&str> {
        let user_name = (cluster, user.to_owned());
        let member = self.people.get(&user_name).map(|person| person.name.as_str());
        member.or_else(|| self.user_names.name(&user_name))
    }

    /// The user names of which nobody in the group is the owner, highest usage first. None for anyone but PIs.
    pub fn unlinked_user_names(&self) -> Vec<UnlinkedUserName> {
        let mut seconds: BTreeMap<(&str, &str), (u64, &str, ClusterId)> = BTreeMap::new();
        for account in self.accounts.iter().filter(|_| self.is_leader) {
            let facts = &account.details;
            for row in account.usage.iter().flat_map(|usage| usage.days.values()).flat_map(|day| day.rows.iter()) {
                let user_name = (facts.cluster, row.user.to_string());
                let is_linked = self.people.contains_key(&user_name) && self.user_names.name(&user_name).is_none();
                if !row.user.is_empty() && !is_linked && facts.own_user.as_deref() != Some(&*row.user) {
                    let entry = seconds.entry((&facts.slug, &row.user));
                    entry.or_insert((0, &facts.title, facts.cluster)).0 += row.totals.core_s;
                }
            }
        }
        let unlinked =
            |((slug, user_name), (used, title, cluster)): ((&str, &str), (u64, &str, ClusterId))| UnlinkedUserName {
                cluster,
                slug: slug.to_owned(),
                cluster_title: title.to_owned(),
                name: self.user_names.name(&(cluster, user_name.to_owned())).unwrap_or_default().to_owned(),
                user_name: user_name.to_owned(),
                core_hours: hours(used),
            };
        let mut all: Vec<UnlinkedUserName> = seconds.into_iter().map(unlinked).collect();
        all.sort_by(|a, b| b.core_hours.total_cmp(&a.core_hours));
        all
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SetUserNameError {
    #[error("The group has reached the maximum number of names. Clear some first.")]
    TooMany,
    /// Not allowed, gone, or an internal error.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

impl UsageService {
    /// Names the person behind a user name that appears in the group's figures, or clears the name.
    pub async fn set_user_name(
        &self,
        actor: &Actor,
        viewer: &Viewer,
        group: GroupId,
        (slug, user_name): (&str, &str),
        name: Option<&DisplayName>,
    ) -> Result<(), SetUserNameError> {
        let view = self.load_group_usage(viewer, group).await.map_err(AuthError::from)?;
        let unlinked = view.unlinked_user_names();
        let known = unlinked.into_iter().find(|known| known.slug == slug && known.user_name == user_name);
        let known = known.ok_or(AuthError::NotFound)?;
        let (mut tx, row) = self.begin_change(actor, group).await?;
        let named = store::usage_user_names::list(&mut tx, group).await.map_err(AuthError::from)?;
        let is_it = |one: &StoredUserName| one.cluster_id == known.cluster && one.user_name == known.user_name;
        if name.is_some() && named.len() >= MAX_NAMED && !named.iter().any(is_it) {
            return Err(SetUserNameError::TooMany);
        }
        let saved = match name {
            Some(name) => {
                store::usage_user_names::set(&mut tx, group, known.cluster, &known.user_name, name.as_str()).await
            }
            None => store::usage_user_names::remove(&mut tx, group, known.cluster, &known.user_name).await,
        };
        saved.map_err(AuthError::from)?;
        let is_named = name.map_or_else(|| "no name".to_owned(), |name| name.as_str().to_owned());
        let detail = format!("{} on {}: {is_named}", super::report::clean_name(&known.user_name), known.cluster_title);
        let committed = self.commit_change(tx, actor, ActivityEventKind::UserNameSet, &row, &detail).await;
        Ok(committed.map_err(AuthError::from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_is_one_person() {
        let row = |cluster: i64, user_name: &str, name: &str| StoredUserName {
            cluster_id: ClusterId(cluster),
            user_name: user_name.into(),
            name: name.into(),
        };
        let names = UserNames::new(vec![
            row(1, "erik", "Erik Berg"),
            row(1, "eberg", "Erik Berg"),
            row(2, "erik", "Erik Berg"),
            row(2, "eva", "Eva"),
        ]);
        let user_name = |cluster: i64, user_name: &str| (ClusterId(cluster), user_name.to_owned());
        for other in [user_name(1, "erik"), user_name(1, "eberg"), user_name(2, "erik")] {
            assert_eq!(names.representative(other.clone()), user_name(1, "erik"));
            assert_eq!(names.same_person(&other).len(), 3);
            assert_eq!(names.name(&other), Some("Erik Berg"));
        }
        assert_eq!(names.representative(user_name(2, "eva")), user_name(2, "eva"));
        let stranger = user_name(9, "erik");
        assert_eq!((names.name(&stranger), names.same_person(&stranger).len()), (None, 1));
        assert_eq!(names.representative(stranger.clone()), stranger);
    }
}
