//! The order of the tables of groups, members, invitations and allocations.

use std::cmp::Ordering;

use crate::store::allocations::Allocation;
use crate::store::groups::{Group, GroupMember};
use crate::usage::AllocationUnit;
use crate::web::pages::groups::InvitationRow;
use crate::web::pages::groups::table_sort::{SortColumn, SortHeading, TableSort, compare_names};

const GROUP_TABLE: &str = "groups";
const MEMBER_TABLE: &str = "members";
const INVITATION_TABLE: &str = "invitations";
const ALLOCATION_TABLE: &str = "allocations";

/// The link that sorts a table of a page.
fn sorted(path: &str) -> impl Fn(&str) -> String + '_ {
    move |sort| format!("{path}?sort={sort}")
}

pub fn sort_groups(sort: &str, groups: &mut [Group]) -> Vec<SortHeading> {
    let sort = TableSort::parse(sort);
    sort.apply(GROUP_TABLE, groups, |a, b, column| match column {
        "name" => Some(compare_names(&a.name, &b.name)),
        "members" => Some(a.people.cmp(&b.people)),
        _ => None,
    });
    let columns = vec![SortColumn::text("name", "Group"), SortColumn::number("members", "Members")];
    sort.headings(GROUP_TABLE, columns, None, sorted("/groups"))
}

/// `path` is the page's own.
pub fn sort_members(sort: &str, path: &str, members: &mut [GroupMember]) -> Vec<SortHeading> {
    let sort = TableSort::parse(sort);
    sort.apply(MEMBER_TABLE, members, compare_members);
    let columns = [("name", "Name"), ("role", "Role"), ("joined", "Joined")];
    sort.headings(MEMBER_TABLE, columns.map(|(code, label)| SortColumn::text(code, label)).into(), None, sorted(path))
}

fn compare_members(a: &GroupMember, b: &GroupMember, column: &str) -> Option<Ordering> {
    match column {
        "name" => Some(compare_names(&a.display_name, &b.display_name)),
        // As the column shows it: whoever is disabled has no role.
        "role" => {
            let shown = |member: &GroupMember| (!member.is_disabled, member.role().title());
            Some(shown(a).cmp(&shown(b)))
        }
        "joined" => Some(a.since.cmp(&b.since)),
        _ => None,
    }
}

/// `path` is the page's own.
pub fn sort_invitations(sort: &str, path: &str, invitations: &mut [InvitationRow]) -> Vec<SortHeading> {
    let sort = TableSort::parse(sort);
    sort.apply(INVITATION_TABLE, invitations, |a, b, column| match column {
        "note" => Some(compare_names(&a.link.label, &b.link.label)),
        "role" => Some(a.role.cmp(b.role)),
        "status" => Some(compare_names(&a.badge.1, &b.badge.1)),
        "expires" => Some(a.link.expires_at.cmp(&b.link.expires_at)),
        _ => None,
    });
    let columns = [("note", "Note"), ("role", "Role"), ("status", "Status"), ("expires", "Expires")];
    sort.headings(
        INVITATION_TABLE,
        columns.map(|(code, label)| SortColumn::text(code, label)).into(),
        None,
        sorted(path),
    )
}

/// `path` is the page's own.
pub fn sort_allocations(sort: &str, path: &str, allocations: &mut [Allocation]) -> Vec<SortHeading> {
    let sort = TableSort::parse(sort);
    let hours = |allocation: &Allocation| {
        AllocationUnit::parse(&allocation.unit).map_or(0.0, |unit| unit.to_hours(allocation.amount))
    };
    sort.apply(ALLOCATION_TABLE, allocations, |a, b, column| match column {
        "account" => Some(compare_names(&a.account, &b.account)),
        "amount" => Some(hours(a).total_cmp(&hours(b))),
        "period" => Some((a.begins(), a.ends()).cmp(&(b.begins(), b.ends()))),
        _ => None,
    });
    let columns = [("account", "Account"), ("amount", "Amount"), ("period", "Period")];
    sort.headings(
        ALLOCATION_TABLE,
        columns.map(|(code, label)| SortColumn::text(code, label)).into(),
        None,
        sorted(path),
    )
}

/// Whether a query string sorts the invitations, which may be folded.
pub fn is_sorting_invitations(sort: &str) -> bool {
    TableSort::parse(sort).is_for(INVITATION_TABLE)
}
