//! The panel beside the form: the script, its cost and start, and what is left to do. Refreshed while someone types;
//! doesn't contact any cluster.

use askama::Template;

use crate::error::AppError;
use crate::recipes::compose::{ComposeProblem, ComposedJob, MISSING_ANSWER};
use crate::sites::cost::AllocationBalanceReport;
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::web::HandlerResult;
use crate::web::http::extractors::RequestContext;
use crate::web::http::page_frame::respond;
use crate::web::pages::compose::cost_and_start::{CostAndBlockers, assess_cost_and_start};
use crate::web::pages::compose::job_draft::{ComposeRequest, JobDraft};
use crate::web::pages::compose::recipe_lookup::ChosenRecipe;

/// How many points of a sweep are shown at once.
const MAX_SHOWN_POINTS: usize = 12;

#[derive(Template)]
#[template(path = "compose/script_panel_fragment.html")]
struct ScriptPanelFragment {
    panel: ScriptPanel,
}

pub struct ScriptPanel {
    pub base: String,
    pub(super) lines: Vec<ScriptLineView>,
    pub(super) changes: Vec<HandChangeView>,
    pub(super) is_editing: bool,
    /// What must be answered or fixed.
    pub(super) todo: Vec<ComposeTodo>,
    /// What is worth a second look.
    pub(super) warnings: Vec<ComposeTodo>,
    /// Keys of questions that don't apply now.
    pub(super) hidden: String,
    pub(super) cost_and_start: CostAndBlockers,
    pub points: Option<SweepPointsView>,
    pub(super) script: String,
    pub(super) generated: String,
}

pub struct ScriptLineView {
    pub(super) text: String,
    pub(super) keys: String,
    /// The question that made it: its label and anchor.
    pub(super) made_by: Option<(String, String)>,
}

/// A change made by hand.
pub struct HandChangeView {
    pub(super) at: usize,
    pub(super) labels: String,
    pub(super) generated: String,
    pub(super) has_generated: bool,
}

/// Something to answer or fix.
pub struct ComposeTodo {
    pub key: String,
    pub label: String,
    pub sentence: String,
}

impl ComposeTodo {
    /// Whether a required answer is missing.
    pub fn is_missing(&self) -> bool {
        !self.label.is_empty() && self.sentence == MISSING_ANSWER
    }
}

/// The points of a sweep, as many as are shown.
pub struct SweepPointsView {
    pub(super) count: usize,
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<(usize, Vec<String>)>,
    pub(super) more: usize,
}

/// Renders the panel for the current form.
pub async fn preview(request: ComposeRequest) -> HandlerResult {
    let (context, _, draft) = request.into_draft().await?;
    respond(&ScriptPanelFragment { panel: load_panel(&context, &draft, &draft.compose()).await? })
}

/// The panel, with what the site last reported about the hours that accounts have left.
pub async fn load_panel(
    context: &RequestContext,
    draft: &JobDraft,
    job: &ComposedJob,
) -> Result<ScriptPanel, AppError> {
    let snapshot = context.app.queue_monitor.snapshot(draft.target.account.id).await?;
    Ok(build_panel(draft, job, snapshot.resources.cost.as_ref()))
}

fn build_panel(draft: &JobDraft, job: &ComposedJob, reported: Option<&AllocationBalanceReport>) -> ScriptPanel {
    let form = &draft.chosen.form;
    let label = |key: &str| form.question(key).map(|question| question.label.clone());
    let made_by = |keys: &[String]| {
        let key = keys.first()?;
        Some((label(key)?, key.clone()))
    };
    let line = |line: &crate::recipes::template::RenderedScriptLine| ScriptLineView {
        text: line.text.clone(),
        keys: line.keys.join(" "),
        made_by: made_by(&line.keys),
    };
    let lines = match &job.edited {
        // The editor shows the whole script.
        Some(_) => Vec::new(),
        None => job.lines.iter().map(line).collect(),
    };
    let changes = job.edited.iter().flat_map(|edited| &edited.changes).map(|change| HandChangeView {
        at: change.first_line,
        labels: change.keys.iter().filter_map(|key| label(key)).collect::<Vec<_>>().join(", "),
        generated: change.generated.join("\n"),
        has_generated: !change.generated.is_empty(),
    });
    let hidden: Vec<&str> = form
        .questions()
        .filter(|question| !form.is_asked(question, &draft.values.answers, &draft.target.compose_context))
        .map(|question| question.key.as_str())
        .collect();
    let points = job.sweep.as_ref().map(|sweep| {
        // Only some of the points may be wanted.
        let array = job.request.array.as_ref().and_then(|array| ArrayTaskSet::parse(&array.tasks)).unwrap_or_default();
        let count = usize::try_from(array.len()).unwrap_or(usize::MAX);
        let numbers = array.iter().filter_map(|task| usize::try_from(task).ok());
        let row = |number: usize| {
            let values = sweep.point(number).into_iter().map(|(_, value)| value.to_owned()).collect();
            (number, values)
        };
        SweepPointsView {
            count,
            names: sweep.axes.iter().map(|axis| axis.name.clone()).collect(),
            rows: numbers.take(MAX_SHOWN_POINTS).map(row).collect(),
            more: count.saturating_sub(MAX_SHOWN_POINTS),
        }
    });
    ScriptPanel {
        base: draft.path(),
        lines,
        changes: changes.collect(),
        is_editing: job.edited.is_some(),
        todo: build_todos(&draft.chosen, &job.problems),
        warnings: build_todos(&draft.chosen, &job.warnings),
        hidden: hidden.join(" "),
        cost_and_start: assess_cost_and_start(draft, &job.final_request(), reported),
        points,
        script: job.final_script(),
        generated: job.edited.as_ref().map(|_| job.build_script()).unwrap_or_default(),
    }
}

/// Problems, each with the label of its question.
pub fn build_todos(chosen: &ChosenRecipe, problems: &[ComposeProblem]) -> Vec<ComposeTodo> {
    let todo = |problem: &ComposeProblem| ComposeTodo {
        label: chosen.form.question(&problem.key).map_or_else(String::new, |question| question.label.clone()),
        key: problem.key.clone(),
        sentence: problem.sentence.clone(),
    };
    problems.iter().map(todo).collect()
}
