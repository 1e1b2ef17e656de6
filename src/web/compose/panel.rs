//! What stands beside the form: the script, what it means, what is still to do. Renewed while someone types; nothing here
//! asks a cluster.

use askama::Template;

use super::super::Answer;
use super::super::extract::{Context, Form, Me, Path};
use super::super::page::show;
use super::chosen::{self, Chosen};
use super::filled::{Fields, Filled, Job};
use super::meaning::{Meaning, meaning};
use super::place::{self, Spot};
use crate::auth::Permission;
use crate::error::AppError;
use crate::jobs::QueueKey;
use crate::recipes::compose::Problem;
use crate::sites::cost::CostReport;

/// So many points of a sweep are shown at once.
const SHOWN_POINTS: usize = 12;
#[derive(Template)]
#[template(path = "compose/panel.html")]
struct PanelPart {
    panel: Panel,
}

/// What stands beside the form: the script and what it means.
pub struct Panel {
    /// The form's address.
    pub base: String,
    pub(super) lines: Vec<ShownLine>,
    pub(super) changes: Vec<ShownChange>,
    pub(super) is_editing: bool,
    /// What must be answered or mended.
    pub(super) todo: Vec<Todo>,
    /// Keys of questions that are not asked now.
    pub(super) hidden: String,
    pub(super) meaning: Meaning,
    pub points: Option<Points>,
    pub(super) script: String,
    pub(super) generated: String,
}

/// A line of the script.
pub struct ShownLine {
    pub(super) text: String,
    pub(super) keys: String,
    /// The question that made it: its label and where it is.
    pub(super) made_by: Option<(String, String)>,
    pub(super) is_own: bool,
}

/// A change by hand.
pub struct ShownChange {
    pub(super) at: usize,
    pub(super) labels: String,
    pub(super) generated: String,
    pub(super) has_generated: bool,
}

/// Something to answer or mend.
pub struct Todo {
    /// The question.
    pub key: String,
    /// In words.
    pub label: String,
    /// What is wrong.
    pub sentence: String,
}

/// The points of a sweep, as many as are shown.
pub struct Points {
    pub(super) count: usize,
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<(usize, Vec<String>)>,
    pub(super) more: usize,
}

/// The script and what it means, for a form as it is now.
pub async fn preview(
    context: Context,
    me: Me,
    Path((slug, address)): Path<(String, String)>,
    Form(fields): Form<Fields>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let spot = place::one(&context, &me, &slug).await?;
    let chosen = chosen::find(&context, &me, &address).await?;
    let filled = Filled::read(fields);
    let job = Job::of(&chosen.form, &filled, &spot.place, &[]);
    let told = told(&context, &me, &spot).await?;
    show(&PanelPart { panel: panel(&chosen, &filled, &spot, &job, told.as_ref()) })
}

/// What the site last told of what projects have left.
pub async fn told(context: &Context, me: &Me, spot: &Spot) -> Result<Option<CostReport>, AppError> {
    let key = QueueKey { person: me.0.person.id, cluster: spot.cluster.id };
    Ok(context.app.queue_monitor.picture(key).await?.standing.cost.clone())
}

/// The panel of a form as it is.
pub fn panel(
    chosen: &Chosen,
    filled: &Filled,
    spot: &Spot,
    job: &Job,
    told: Option<&CostReport>,
) -> Panel {
    let form = &chosen.form;
    let label = |key: &str| form.question(key).map(|question| question.label.clone());
    let made_by = |keys: &[String]| {
        let key = keys.first()?;
        Some((label(key)?, key.clone()))
    };
    let line = |line: &crate::recipes::template::Line, is_own: bool| ShownLine {
        text: line.text.clone(),
        keys: line.keys.join(" "),
        made_by: made_by(&line.keys),
        is_own,
    };
    let lines = match &job.edited {
        Some(edited) => {
            edited.lines.iter().map(|one| line(&one.line, one.change.is_some())).collect()
        }
        None => job.composed.lines.iter().map(|one| line(one, false)).collect(),
    };
    let changes = job.edited.iter().flat_map(|edited| &edited.changes).map(|change| ShownChange {
        at: change.at,
        labels: change.keys.iter().filter_map(|key| label(key)).collect::<Vec<_>>().join(", "),
        generated: change.generated.join("\n"),
        has_generated: !change.generated.is_empty(),
    });
    let hidden: Vec<&str> = form
        .questions()
        .filter(|one| !form.is_asked(one, &filled.answers, &spot.place))
        .map(|one| one.key.as_str())
        .collect();
    let points = job.composed.sweep.as_ref().map(|sweep| {
        let count = sweep.len();
        let row = |number: usize| {
            let values =
                sweep.point(number).into_iter().map(|(_, value)| value.to_owned()).collect();
            (number, values)
        };
        Points {
            count,
            names: sweep.axes.iter().map(|axis| axis.name.clone()).collect(),
            rows: (0..count.min(SHOWN_POINTS)).map(row).collect(),
            more: count.saturating_sub(SHOWN_POINTS),
        }
    });
    Panel {
        base: format!("/compose/{}/{}", spot.cluster.slug, chosen.address),
        lines,
        changes: changes.collect(),
        is_editing: job.edited.is_some(),
        todo: todo(chosen, &job.composed.problems),
        hidden: hidden.join(" "),
        meaning: meaning(chosen, &job.request(), spot, told),
        points,
        script: job.script(),
        generated: job.composed.script(),
    }
}

/// Problems with the words of their questions.
pub fn todo(chosen: &Chosen, problems: &[Problem]) -> Vec<Todo> {
    let one = |problem: &Problem| Todo {
        label: chosen
            .form
            .question(&problem.key)
            .map_or_else(String::new, |question| question.label.clone()),
        key: problem.key.clone(),
        sentence: problem.sentence.clone(),
    };
    problems.iter().map(one).collect()
}
