//! Help: common questions with a link to the page where each thing is done, and the glossary. Questions about pages that
//! someone may not open are left out.

use askama::Template;

use crate::auth::Permission;
use crate::clock::Day;
use crate::domain::GroupId;
use crate::explain::GlossaryTerm;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};

#[derive(Template)]
#[template(path = "help/help.html")]
struct HelpPage {
    page: PageFrame,
    /// Groups whose usage the viewer may see.
    usage_groups: Vec<HelpGroup>,
    /// Groups that the viewer leads.
    led_groups: Vec<HelpGroup>,
    /// The last complete month, as in the URL of a usage page.
    last_month: String,
    is_admin: bool,
    terms: &'static [GlossaryTerm],
}

pub struct HelpGroup {
    id: GroupId,
    name: String,
}

pub async fn get(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseOwnAccount)?;
    let groups_with = |permission: fn(GroupId) -> Permission| -> Vec<HelpGroup> {
        let allowed = me.0.memberships.iter().filter(|group| me.may(permission(group.group_id)).is_ok());
        allowed.map(|group| HelpGroup { id: group.group_id, name: group.group_name.clone() }).collect()
    };
    let portal_pages =
        [Permission::ManageClusters, Permission::ManageGroups, Permission::ManagePeople, Permission::SeeAllActivity];
    respond(&HelpPage {
        usage_groups: groups_with(Permission::SeeUsage),
        led_groups: groups_with(Permission::ManageUsage),
        last_month: Day::from_time(context.app.clock.now()).month().previous().to_string(),
        is_admin: portal_pages.into_iter().all(|permission| me.may(permission).is_ok()),
        terms: GlossaryTerm::ALL,
        page: PageFrame::for_person(&context, &me.0, "Help", NavSection::NoSection),
    })
}

#[cfg(test)]
mod tests {
    use crate::explain::GlossaryTerm;
    use crate::slurm::job::JobState;
    use crate::web::pages::jobs::list_row::state_label;

    /// Every state that people see is in the glossary, under the words that they see.
    #[test]
    fn job_states_are_explained() {
        let states = [
            JobState::Pending,
            JobState::Configuring,
            JobState::Running,
            JobState::Suspended,
            JobState::Completing,
            JobState::Completed,
            JobState::Failed,
            JobState::Cancelled,
            JobState::Timeout,
            JobState::OutOfMemory,
            JobState::NodeFail,
            JobState::Preempted,
            JobState::Deadline,
        ];
        for state in states {
            let (_, label) = state_label(state);
            assert!(GlossaryTerm::ALL.iter().any(|term| term.title() == label), "{label} is not in the glossary");
        }
    }
}
