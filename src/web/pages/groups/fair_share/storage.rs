//! A group's project storage, and how much of it each person uses.

use crate::format;
use crate::sites::quota;
use crate::sites::storage_per_user::UserProjectStorage;
use crate::usage::{GroupAccountContext, GroupUsage};
use crate::web::pages::home::resource_bars::{FolderQuotaBars, folder_quota};

const MAX_FOLDERS: usize = 20;
/// People listed per project.
const MAX_PEOPLE: usize = 100;

pub struct ProjectStorageByPerson {
    pub project: String,
    /// Largest first.
    pub people: Vec<PersonStorageUsage>,
    /// How many people are not listed.
    pub more: usize,
}

pub struct PersonStorageUsage {
    /// Display name.
    pub name: String,
    /// User name on the cluster, where it differs.
    pub user: String,
    pub space: String,
    pub files: String,
}

pub fn project_folders(quotas: &[quota::StorageQuota], accounts: &[&GroupAccountContext]) -> Vec<FolderQuotaBars> {
    group_quotas(quotas, accounts).take(MAX_FOLDERS).map(folder_quota).collect()
}

/// The quotas that belong to the group's accounts.
pub fn group_quotas<'a>(
    quotas: &'a [quota::StorageQuota],
    accounts: &[&GroupAccountContext],
) -> impl Iterator<Item = &'a quota::StorageQuota> {
    quotas.iter().filter(|quota| label_names_account(&quota.label, accounts))
}

/// Whether a label contains an account's name as a whole word: `/project (project def-x)`, `/cluster/projects/nn1k`.
fn label_names_account(label: &str, accounts: &[&GroupAccountContext]) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '_';
    // A user can have the same name as an account: `/home (user def-x)`.
    let is_own = label.contains("(user ");
    !is_own
        && label
            .split(|letter| !is_part(letter))
            .any(|word| accounts.iter().any(|account| is_account_name(word, account)))
}

pub fn is_account_name(word: &str, facts: &GroupAccountContext) -> bool {
    facts.account == word || facts.slurm_names.iter().any(|name| name == word)
}

/// Storage by person; only PIs see it.
pub fn storage_by_person(
    rows: &[UserProjectStorage],
    accounts: &[&GroupAccountContext],
    view: &GroupUsage,
) -> Vec<ProjectStorageByPerson> {
    let mut found: Vec<(String, Vec<&UserProjectStorage>)> = Vec::new();
    let Some(cluster) = accounts.first().map(|facts| facts.cluster) else { return Vec::new() };
    let of_group = |row: &&UserProjectStorage| accounts.iter().any(|facts| is_account_name(&row.project, facts));
    for row in rows.iter().filter(of_group) {
        match found.iter_mut().find(|(project, _)| *project == row.project) {
            Some((_, of_project)) => of_project.push(row),
            None => found.push((row.project.clone(), vec![row])),
        }
    }
    let project = |(project, mut rows): (String, Vec<&UserProjectStorage>)| {
        rows.sort_by(|a, b| (b.used_bytes, b.files, &a.user).cmp(&(a.used_bytes, a.files, &b.user)));
        let more = rows.len().saturating_sub(MAX_PEOPLE);
        let person = |row: &&UserProjectStorage| {
            let name = view.known_name(cluster, &row.user);
            PersonStorageUsage {
                name: name.unwrap_or(&row.user).to_owned(),
                user: name.map(|_| row.user.clone()).unwrap_or_default(),
                space: format_space(row.used_bytes),
                files: format::number(row.files),
            }
        };
        let people = rows.iter().take(MAX_PEOPLE).map(person).collect();
        ProjectStorageByPerson { project, people, more }
    };
    found.into_iter().map(project).collect()
}

/// The quota program reports hundredths of a GiB, so zero means "less than that".
fn format_space(bytes: u64) -> String {
    match bytes.div_ceil(1 << 20) {
        0 => "less than 10 MB".to_owned(),
        mb => format::memory(mb),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use super::*;
    use crate::cluster::DiscoveredFacts;
    use crate::domain::{ClusterId, GroupId, PersonId};
    use crate::usage::GroupMemberName;

    fn facts(account: &str) -> GroupAccountContext {
        GroupAccountContext {
            cluster: ClusterId(1),
            slug: "key".into(),
            title: "Key".into(),
            account: account.into(),
            slurm_names: vec![format!("{account}_cpu")],
            site: Arc::new(crate::sites::presets()[0].clone()),
            discovered: Arc::new(DiscoveredFacts::default()),
            own_user: None,
            is_narrow: false,
            sources: Vec::new(),
            all_sources: Vec::new(),
        }
    }

    #[test]
    fn labels_name_accounts_as_whole_words() {
        let (smith, nn) = (facts("def-smith"), facts("nn8050k"));
        let accounts = [&smith, &nn];
        for good in ["/project (project def-smith)", "/cluster/projects/nn8050k", "/p (group def-smith_cpu)"] {
            assert!(label_names_account(good, &accounts), "{good}");
        }
        for bad in ["/project (project def-smithers)", "/home (user def-smith)", "/home/def", ""] {
            assert!(!label_names_account(bad, &accounts), "{bad}");
        }
    }

    #[test]
    fn people_of_a_project_by_name() {
        let smith = facts("def-smith");
        let row = |project: &str, user: &str, used_bytes| UserProjectStorage {
            project: project.into(),
            user: user.into(),
            used_bytes,
            files: 3,
        };
        let rows = [row("def-smith", "bob", 0), row("def-smith", "alice", 5 << 30), row("def-x", "eve", 9)];
        let alice = GroupMemberName { id: PersonId(7), name: "Alice Martin".into() };
        let view = GroupUsage {
            group: GroupId(1),
            is_leader: true,
            viewer: PersonId(1),
            accounts: Vec::new(),
            people: Arc::new(HashMap::from([((ClusterId(1), "alice".to_owned()), alice)])),
            user_names: Arc::default(),
        };
        let found = storage_by_person(&rows, &[&smith], &view);
        assert_eq!(found.len(), 1, "nothing of other projects");
        let shown: Vec<_> =
            found[0].people.iter().map(|person| (&*person.name, &*person.user, &*person.space)).collect();
        assert_eq!(shown, [("Alice Martin", "alice", "5 GB"), ("bob", "", "less than 10 MB")]);
    }
}
