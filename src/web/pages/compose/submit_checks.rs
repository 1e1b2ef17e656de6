//! What the cluster says about the files and the job that a form names: whether they exist. Loaded after the page and
//! after changes; nobody has to wait for it to submit.

use askama::Template;

use crate::cluster::submit_checks::{MAX_CHECKED_PATHS, RemotePathState};
use crate::format;
use crate::recipes::compose::{ComposeProblem, InputPath};
use crate::recipes::question::RequiredPathKind;
use crate::recipes::request::RequestField;
use crate::web::HandlerResult;
use crate::web::http::page_frame::respond;
use crate::web::pages::compose::cost_and_start::question_key;
use crate::web::pages::compose::job_draft::ComposeRequest;
use crate::web::pages::compose::script_panel::{ComposeTodo, build_todos};

#[derive(Template)]
#[template(path = "compose/submit_checks_fragment.html")]
struct SubmitChecksFragment {
    base: String,
    cluster: String,
    /// What was asked about, in words: `3 paths and job 77`; empty if nothing was.
    asked: String,
    warnings: Vec<ComposeTodo>,
    /// Why there is no answer, or not to everything.
    trouble: String,
}

pub async fn post(request: ComposeRequest) -> HandlerResult {
    let (context, _, draft) = request.into_draft().await?;
    let job = draft.compose();
    let is_fresh = draft.values.pressed_value("fresh").is_some();
    let inputs = &job.input_paths[..job.input_paths.len().min(MAX_CHECKED_PATHS)];
    let dependency = job.final_request().dependency.map(|dependency| dependency.job);
    let cluster = draft.target.cluster().title.clone();
    let mut answer = SubmitChecksFragment {
        base: draft.path(),
        asked: describe_question(inputs.len(), dependency),
        cluster,
        warnings: Vec::new(),
        trouble: String::new(),
    };
    if answer.asked.is_empty() {
        return respond(&answer);
    }
    let paths: Vec<String> = inputs.iter().map(|input| input.path.clone()).collect();
    match context.app.submit_checks.check(draft.target.account.id, &paths, dependency, is_fresh).await {
        Ok(reply) => {
            let states = inputs.iter().zip(&reply.paths);
            let mut found: Vec<ComposeProblem> =
                states.filter_map(|(input, state)| path_warning(input, *state, &answer.cluster)).collect();
            match (dependency, reply.is_job_known) {
                (Some(number), Some(false)) => found.push(ComposeProblem {
                    key: question_key(&draft.chosen, RequestField::After),
                    sentence: format!(
                        "{} doesn't know job {number}. Check the number. If the job ended a while ago, leave this empty.",
                        answer.cluster
                    ),
                }),
                (Some(number), None) => {
                    answer.asked = describe_question(0, dependency);
                    answer.trouble = format!("Slurm gave no answer about job {number}.");
                }
                _ => {}
            }
            answer.warnings = build_todos(&draft.chosen, &found);
        }
        Err(error) => answer.trouble = error.to_string(),
    }
    respond(&answer)
}

fn describe_question(paths: usize, job: Option<u64>) -> String {
    let paths = (paths > 0).then(|| format::count(u64::try_from(paths).unwrap_or(u64::MAX), "path"));
    let job = job.map(|number| format!("job {number}"));
    paths.into_iter().chain(job).collect::<Vec<_>>().join(" and ")
}

/// What is wrong at a path; none if it is as the job needs it.
fn path_warning(input: &InputPath, state: RemotePathState, cluster: &str) -> Option<ComposeProblem> {
    let path = &input.path;
    let sentence = match (state, input.kind) {
        (RemotePathState::Missing, _) => format!("{path} doesn't exist on {cluster}."),
        (RemotePathState::Unreadable, _) => format!("You can't read {path} on {cluster}."),
        (RemotePathState::Folder, RequiredPathKind::File) => format!("{path} is a folder, not a file."),
        (RemotePathState::File, RequiredPathKind::Folder) => format!("{path} is a file, not a folder."),
        _ => return None,
    };
    Some(ComposeProblem { key: input.key.clone(), sentence })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_fit_is_told() {
        use RemotePathState::{File, Folder, Missing, Unreadable};
        let told = |kind, state| {
            let input = InputPath { key: "script".into(), path: "/a b".into(), kind };
            path_warning(&input, state, "Demo").map(|problem| problem.sentence)
        };
        for (kind, state) in [
            (RequiredPathKind::File, File),
            (RequiredPathKind::Folder, Folder),
            (RequiredPathKind::Any, File),
            (RequiredPathKind::Any, Folder),
        ] {
            assert_eq!(told(kind, state), None);
        }
        assert_eq!(told(RequiredPathKind::Any, Missing).unwrap(), "/a b doesn't exist on Demo.");
        assert_eq!(told(RequiredPathKind::File, Folder).unwrap(), "/a b is a folder, not a file.");
        assert_eq!(told(RequiredPathKind::Folder, File).unwrap(), "/a b is a file, not a folder.");
        assert_eq!(told(RequiredPathKind::File, Unreadable).unwrap(), "You can't read /a b on Demo.");
    }

    #[test]
    fn what_was_asked() {
        assert_eq!(describe_question(0, None), "");
        assert_eq!(describe_question(1, None), "1 path");
        assert_eq!(describe_question(3, Some(77)), "3 paths and job 77");
    }
}
