//! Caches computed figures until any of their inputs change. A year of a busy group is tens of thousands of sums, and
//! pages are viewed far more often than anything is read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use super::{FiguresSelection, UsageFigures, compute_figures};
use crate::clock::Day;
use crate::core::lock;
use crate::domain::{ClusterId, GroupId, PersonId};
use crate::usage::account_usage::AccountUsage;
use crate::usage::group_usage::{GroupAccountContext, GroupAccountUsage, GroupMemberName, GroupUsage};
use crate::usage::service::UsageService;
use crate::usage::user_names::UserNames;

/// At most this many entries are kept.
const MAX_ENTRIES: usize = 64;

/// The viewer, the group and the query.
type FiguresCacheKey = (PersonId, GroupId, FiguresSelection);

#[derive(Default)]
pub struct FiguresCache(Mutex<HashMap<FiguresCacheKey, CachedFigures>>);

struct CachedFigures {
    inputs: FiguresInputFingerprint,
    figures: Arc<UsageFigures>,
}

/// All inputs of the figures, except the query.
struct FiguresInputFingerprint {
    is_leader: bool,
    people: Arc<HashMap<(ClusterId, String), GroupMemberName>>,
    user_names: Arc<UserNames>,
    accounts: Vec<AccountUsageFingerprint>,
}

struct AccountUsageFingerprint {
    details: Arc<GroupAccountContext>,
    today: Day,
    /// Weak, so that usage nobody views can leave the memory. Usage is never changed, only replaced, so the same
    /// address means the same content; an address is not reused while this points to it.
    usage: Vec<Weak<AccountUsage>>,
}

impl FiguresInputFingerprint {
    fn new(view: &GroupUsage) -> Self {
        let accounts = view.accounts.iter().map(AccountUsageFingerprint::new).collect();
        Self { is_leader: view.is_leader, people: view.people.clone(), user_names: view.user_names.clone(), accounts }
    }

    fn matches(&self, view: &GroupUsage) -> bool {
        let same =
            |(fingerprint, account): (&AccountUsageFingerprint, &GroupAccountUsage)| fingerprint.matches(account);
        self.is_leader == view.is_leader
            && self.accounts.len() == view.accounts.len()
            && self.accounts.iter().zip(&view.accounts).all(same)
            && self.people == view.people
            && self.user_names == view.user_names
    }
}

impl AccountUsageFingerprint {
    fn new(account: &GroupAccountUsage) -> Self {
        let usage = account.usage.iter().map(Arc::downgrade).collect();
        Self { details: account.details.clone(), today: account.today, usage }
    }

    fn matches(&self, account: &GroupAccountUsage) -> bool {
        let (before, now) = (&self.details, &account.details);
        let same = |(known, usage): (&Weak<AccountUsage>, &Arc<AccountUsage>)| known.as_ptr() == Arc::as_ptr(usage);
        before.cluster == now.cluster
            && before.slug == now.slug
            && before.title == now.title
            && before.account == now.account
            && before.own_user == now.own_user
            && self.today == account.today
            && self.usage.len() == account.usage.len()
            && self.usage.iter().zip(&account.usage).all(same)
    }
}

impl FiguresCache {
    pub(super) fn get_or_compute(&self, view: &GroupUsage, choice: &FiguresSelection) -> Arc<UsageFigures> {
        let key = (view.viewer, view.group, choice.clone());
        if let Some(cached) = lock(&self.0).get(&key).filter(|cached| cached.inputs.matches(view)) {
            return cached.figures.clone();
        }
        let cached = CachedFigures {
            inputs: FiguresInputFingerprint::new(view),
            figures: Arc::new(compute_figures(view, choice)),
        };
        let figures = cached.figures.clone();
        let mut entries = lock(&self.0);
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        entries.insert(key, cached);
        figures
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

impl UsageService {
    /// The figures for a query.
    pub fn figures(&self, view: &GroupUsage, choice: &FiguresSelection) -> Arc<UsageFigures> {
        self.0.figures.get_or_compute(view, choice)
    }
}
