//! Builds the job request from the answers.

use super::{AnswersByKey, ComposedJob, template_values};
use crate::recipes::context::ComposeCluster;
use crate::recipes::form::{FormAnswers, RecipeQuestionForm, SWEEP_AT_ONCE, SWEEP_ONLY};
use crate::recipes::partition_choice::choose_partition;
use crate::recipes::request::{ArrayRequest, GpuRequest, JobDependency, JobRequest, MemoryRequest, RequestField};
use crate::recipes::script_import;
use crate::recipes::value::AnswerValue;
use crate::sites::JobOptionRule;
use crate::slurm::array_tasks::ArrayTaskSet;

pub fn fill_request(
    job: &mut ComposedJob,
    form: &RecipeQuestionForm,
    values: &AnswersByKey<'_>,
    answers: &FormAnswers,
    cluster: &ComposeCluster,
) {
    let mut asked = AnswersByRequestField { form, values };
    let mut request = JobRequest {
        name: asked.text(RequestField::Name),
        account: asked.text(RequestField::Account),
        minutes: match asked.value(RequestField::Time) {
            Some(AnswerValue::Minutes(minutes)) => Some(*minutes),
            _ => None,
        },
        nodes: asked.number(RequestField::Nodes),
        tasks: asked.number(RequestField::Tasks),
        tasks_per_node: asked.number(RequestField::TasksPerNode),
        cores: asked.number(RequestField::Cores),
        warn_s: asked.number(RequestField::Warn).map(|minutes| minutes.saturating_mul(60)),
        mail: matches!(asked.value(RequestField::Mail), Some(AnswerValue::Switch(true))),
        memory: asked.memory(),
        ..JobRequest::default()
    };
    request.gpus = asked.number(RequestField::Gpus).map(|count| GpuRequest {
        model: asked.text(RequestField::GpuModel).filter(|_| cluster.site.jobs.gpu_model != JobOptionRule::Never),
        count,
    });
    if form.task_per_gpu {
        request.tasks_per_node = request.gpus.as_ref().map(|gpus| gpus.count);
    }
    // Otherwise Slurm would signal a short job as soon as it starts.
    if let (Some(warn_s), Some(minutes)) = (request.warn_s, request.minutes) {
        request.warn_s = Some(warn_s.min(minutes.saturating_mul(60) / 2));
    }
    set_partition(&mut request, &mut asked, cluster);
    request.dependency = asked.number(RequestField::After).map(|job| JobDependency {
        job: job.into(),
        must_succeed: answers.get("after_how").is_none_or(|how| how != "any"),
    });
    set_array(&mut request, &asked, answers, job);
    set_folder(&mut request, &asked, cluster, job);
    set_other_options(&mut request, form, values, job);
    if !form.bare {
        request.other_options.push(("--export".to_owned(), Some("NONE".to_owned())));
    }
    job.request = request;
}

struct AnswersByRequestField<'a> {
    form: &'a RecipeQuestionForm,
    values: &'a AnswersByKey<'a>,
}

impl<'a> AnswersByRequestField<'a> {
    fn value(&self, sets: RequestField) -> Option<&'a AnswerValue> {
        let mut questions = self.form.questions().filter(|question| question.sets == Some(sets));
        questions.find_map(|question| self.values.get(question.key.as_str()))
    }

    fn key(&self, sets: RequestField) -> String {
        self.form.find_setting(sets).map(|question| question.key.clone()).unwrap_or_default()
    }

    fn text(&self, sets: RequestField) -> Option<String> {
        match self.value(sets)? {
            AnswerValue::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// A number; 0 means not set.
    fn number(&self, sets: RequestField) -> Option<u32> {
        match self.value(sets)? {
            AnswerValue::Number(number) => u32::try_from(*number).ok().filter(|number| *number > 0),
            _ => None,
        }
    }

    /// Whether the partition is up to the person's own script: unless the form asks for GPUs, which the script's
    /// partition must have, it stays as it is.
    fn is_left_to_script(&self, request: &JobRequest) -> bool {
        let Some(script) = template_values::pasted_script(self.form, self.values) else { return false };
        request.gpus.is_none()
            || script_import::parse_directives(&script).iter().any(|(option, _)| option == "--partition")
    }

    fn memory(&self) -> Option<MemoryRequest> {
        if let Some(AnswerValue::Memory(mb)) = self.value(RequestField::Memory) {
            return Some(MemoryRequest::PerNode(*mb));
        }
        match self.value(RequestField::MemoryPerCore)? {
            AnswerValue::Memory(mb) => Some(MemoryRequest::PerCore(*mb)),
            _ => None,
        }
    }
}

/// Partition and QOS: as chosen, or a partition that has the requested GPUs: as the site says, or as the cluster showed.
fn set_partition(request: &mut JobRequest, asked: &mut AnswersByRequestField<'_>, cluster: &ComposeCluster) {
    let jobs = &cluster.site.jobs;
    request.qos = asked.text(RequestField::Qos);
    if let Some(name) = asked.text(RequestField::Partition) {
        match jobs.types.iter().find(|kind| kind.name == name) {
            Some(kind) => {
                request.partition.clone_from(&kind.partition);
                request.qos = kind.qos.clone().or(request.qos.take());
            }
            None => request.partition = Some(name),
        }
    } else if !asked.is_left_to_script(request) {
        let by_site = request.gpus.as_ref().filter(|_| jobs.partition != JobOptionRule::Never).and_then(|gpus| {
            let gpu = match gpus.model.as_deref() {
                Some(model) => cluster.gpu(model),
                None => cluster.gpus.first(),
            };
            gpu.and_then(|gpu| gpu.partition.clone())
        });
        request.partition =
            by_site.or_else(|| choose_partition(request, cluster).map(|partition| partition.name.clone()));
    }
}

/// The array tasks: points of a sweep, the consecutive pieces of a long run, or as typed.
fn set_array(
    request: &mut JobRequest,
    asked: &AnswersByRequestField<'_>,
    answers: &FormAnswers,
    job: &mut ComposedJob,
) {
    let pieces = asked.number(RequestField::Array).filter(|pieces| *pieces > 1);
    if let Some(sweep) = &job.sweep {
        let last = sweep.len().saturating_sub(1);
        let text = answers.get(SWEEP_AT_ONCE).map_or("", |text| text.trim());
        let at_once = text.parse().ok().filter(|most: &u32| *most > 0);
        if at_once.is_none() && !text.is_empty() {
            job.add_problem(SWEEP_AT_ONCE, "Enter a whole number, such as 10, or leave it empty.");
        }
        let tasks = choose_points(last, answers, job).unwrap_or_else(|| format!("0-{last}"));
        request.array = Some(ArrayRequest { tasks, at_once });
        if pieces.is_some() {
            let key = asked.key(RequestField::Array);
            job.add_problem(&key, "A sweep can't also be split into several jobs, because both use a job array.");
        }
    } else if let Some(pieces) = pieces {
        request.array = Some(ArrayRequest { tasks: format!("1-{pieces}"), at_once: Some(1) });
    } else if let Some(text) = asked.text(RequestField::Array) {
        match ArrayTaskSet::parse(&text.replace(' ', "")) {
            Some(set) => {
                request.array = Some(ArrayRequest { tasks: set.to_string(), at_once: set.max_running });
            }
            None => job.add_problem(
                &asked.key(RequestField::Array),
                "Enter task numbers, such as 0-9 or 1,3,5. Add %2 to run at most two at a time.",
            ),
        }
    }
}

/// The points of a sweep that are to run, if not all of them: those that failed in an earlier run, for example.
fn choose_points(last: usize, answers: &FormAnswers, job: &mut ComposedJob) -> Option<String> {
    let text = answers.get(SWEEP_ONLY).map_or("", |text| text.trim());
    if text.is_empty() {
        return None;
    }
    let is_point = |task: u32| usize::try_from(task).is_ok_and(|task| task <= last);
    // The length first: a list that names tasks many times over would take long to go through.
    let has_room = |set: &ArrayTaskSet| usize::try_from(set.len()).is_ok_and(|count| count <= last + 1);
    let set = ArrayTaskSet::parse(&text.replace(' ', "")).filter(|set| set.max_running.is_none() && has_room(set));
    let tasks = set.filter(|set| set.iter().all(is_point)).map(|set| set.to_string());
    if tasks.is_none() {
        let words = format!("Enter task numbers from 0 to {last}, such as 0 or 1,3-5, or leave it empty.");
        job.add_problem(SWEEP_ONLY, words);
    }
    tasks
}

/// The job's working folder, where its output goes too. Slurm expands no variables there and creates no folders.
fn set_folder(
    request: &mut JobRequest,
    asked: &AnswersByRequestField<'_>,
    cluster: &ComposeCluster,
    job: &mut ComposedJob,
) {
    let Some(AnswerValue::Words(words)) = asked.value(RequestField::Folder) else { return };
    let key = asked.key(RequestField::Folder);
    let Some(path) = words.first().and_then(|word| word.resolve(&cluster.folders)) else {
        job.add_problem(&key, "This folder must be known before the job starts. Use a full path, $HOME or $SCRATCH.");
        return;
    };
    if !path.starts_with('/') {
        job.add_problem(&key, "Enter the full path.");
        return;
    }
    let name: String = request
        .name
        .as_deref()
        .unwrap_or("job")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' })
        .collect();
    let number = if request.array.is_some() { "%A_%a" } else { "%j" };
    request.output = Some(format!("{}/{name}-{number}.out", path.trim_end_matches('/').replace('%', "%%")));
    request.folder = Some(path.clone());
    job.folders.push(path);
}

/// Options without a question of their own: typed into the options field, or taken from an imported script.
fn set_other_options(
    request: &mut JobRequest,
    form: &RecipeQuestionForm,
    values: &AnswersByKey<'_>,
    job: &mut ComposedJob,
) {
    let question = form.find_setting(RequestField::Other);
    if let Some((question, AnswerValue::Words(words))) =
        question.and_then(|question| Some((question, values.get(question.key.as_str())?)))
    {
        for word in words {
            let text = word.resolve(&std::collections::BTreeMap::new()).unwrap_or_default();
            match script_import::parse_option(&text) {
                // The output is in the job's folder only unless someone says where it goes.
                Some((option, Some(path)))
                    if option == "--output" && form.find_setting(RequestField::Output).is_none() =>
                {
                    request.output = Some(path);
                }
                Some((option, _)) if script_import::is_already_set(request, &option) => {
                    let words = format!("{option} has its own field above. Set it there.");
                    job.add_problem(&question.key, words);
                }
                Some((option, value)) => request.other_options.push((option, value)),
                None => job.add_problem(&question.key, format!("“{text}” isn't an sbatch option.")),
            }
        }
    }
    if let Some(body) = template_values::pasted_script(form, values) {
        for (option, value) in script_import::parse_directives(&body) {
            if !script_import::is_already_set(request, &option) {
                request.other_options.push((option, value));
            }
        }
    }
}
