//! The request of a job from the answers that set parts of it.

use super::super::form::{Answers, Form, SWEEP_AT_ONCE};
use super::super::place::Place;
use super::super::read_back;
use super::super::request::{After, Array, Gpus, Memory, Request, Sets};
use super::super::value::Value;
use super::{Composed, Values, slots};
use crate::sites::JobOptionRule;

/// Puts the request together.
pub fn fill(
    job: &mut Composed,
    form: &Form,
    values: &Values<'_>,
    answers: &Answers,
    place: &Place,
) {
    let mut asked = Asked { form, values };
    let mut request = Request {
        name: asked.text(Sets::Name),
        account: asked.text(Sets::Account),
        minutes: match asked.value(Sets::Time) {
            Some(Value::Minutes(minutes)) => Some(*minutes),
            _ => None,
        },
        nodes: asked.number(Sets::Nodes),
        tasks: asked.number(Sets::Tasks),
        tasks_per_node: asked.number(Sets::TasksPerNode),
        cores: asked.number(Sets::Cores),
        warn_s: asked.number(Sets::Warn).map(|minutes| minutes.saturating_mul(60)),
        mail: matches!(asked.value(Sets::Mail), Some(Value::Switch(true))),
        memory: asked.memory(),
        ..Request::default()
    };
    request.gpus = asked.number(Sets::Gpus).map(|count| Gpus {
        model: asked
            .text(Sets::GpuModel)
            .filter(|_| place.site.jobs.gpu_model != JobOptionRule::Never),
        count,
    });
    if form.task_per_gpu {
        request.tasks_per_node = request.gpus.as_ref().map(|gpus| gpus.count);
    }
    // Slurm would warn a short job at once.
    if let (Some(warn_s), Some(minutes)) = (request.warn_s, request.minutes) {
        request.warn_s = Some(warn_s.min(minutes.saturating_mul(60) / 2));
    }
    sort_of_job(&mut request, &mut asked, place);
    request.after = asked.number(Sets::After).map(|job| After {
        job: job.into(),
        ended_well: answers.get("after_how").is_none_or(|how| how != "any"),
    });
    tasks(&mut request, &asked, answers, job);
    folder(&mut request, &asked, place, job);
    others(&mut request, form, values, job);
    if !form.bare {
        request.others.push(("--export".to_owned(), Some("NONE".to_owned())));
    }
    job.request = request;
}

struct Asked<'a> {
    form: &'a Form,
    values: &'a Values<'a>,
}

impl<'a> Asked<'a> {
    fn value(&self, sets: Sets) -> Option<&'a Value> {
        let mut questions = self.form.questions().filter(|one| one.sets == Some(sets));
        questions.find_map(|question| self.values.get(question.key.as_str()))
    }

    fn key(&self, sets: Sets) -> String {
        self.form.that_sets(sets).map(|question| question.key.clone()).unwrap_or_default()
    }

    fn text(&self, sets: Sets) -> Option<String> {
        match self.value(sets)? {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// A number; 0 says nothing.
    fn number(&self, sets: Sets) -> Option<u32> {
        match self.value(sets)? {
            Value::Number(number) => u32::try_from(*number).ok().filter(|number| *number > 0),
            _ => None,
        }
    }

    fn memory(&self) -> Option<Memory> {
        if let Some(Value::Memory(mb)) = self.value(Sets::Memory) {
            return Some(Memory::PerNode(*mb));
        }
        match self.value(Sets::MemoryPerCore)? {
            Value::Memory(mb) => Some(Memory::PerCore(*mb)),
            _ => None,
        }
    }
}

/// Partition and quality of service: as chosen, or where the GPUs are.
fn sort_of_job(request: &mut Request, asked: &mut Asked<'_>, place: &Place) {
    let jobs = &place.site.jobs;
    request.qos = asked.text(Sets::Qos);
    if let Some(name) = asked.text(Sets::Partition) {
        match jobs.types.iter().find(|kind| kind.name == name) {
            Some(kind) => {
                request.partition.clone_from(&kind.partition);
                request.qos = kind.qos.clone().or(request.qos.take());
            }
            None => request.partition = Some(name),
        }
    } else if jobs.partition != JobOptionRule::Never && request.gpus.is_some() {
        let model = request.gpus.as_ref().and_then(|gpus| gpus.model.as_deref());
        let gpu = match model {
            Some(model) => place.gpu(model),
            None => place.gpus.first(),
        };
        request.partition = gpu.and_then(|gpu| gpu.partition.clone());
    }
}

/// The tasks of an array: points of a sweep, or pieces of a long run one after the other.
fn tasks(request: &mut Request, asked: &Asked<'_>, answers: &Answers, job: &mut Composed) {
    let pieces = asked.number(Sets::Array).filter(|pieces| *pieces > 1);
    if let Some(sweep) = &job.sweep {
        let last = sweep.len().saturating_sub(1);
        let text = answers.get(SWEEP_AT_ONCE).map_or("", |text| text.trim());
        let at_once = text.parse().ok().filter(|most: &u32| *most > 0);
        if at_once.is_none() && !text.is_empty() {
            job.problem(SWEEP_AT_ONCE, "Give a whole number, such as 10, or leave it empty.");
        }
        request.array = Some(Array { tasks: format!("0-{last}"), at_once });
        if pieces.is_some() {
            let key = asked.key(Sets::Array);
            job.problem(&key, "A sweep cannot be run in pieces as well: both are arrays of jobs.");
        }
    } else if let Some(pieces) = pieces {
        request.array = Some(Array { tasks: format!("1-{pieces}"), at_once: Some(1) });
    }
}

/// The folder that a job starts in and writes its output to. Slurm fills in no variables there, and makes no folders.
fn folder(request: &mut Request, asked: &Asked<'_>, place: &Place, job: &mut Composed) {
    let Some(Value::Words(words)) = asked.value(Sets::Folder) else { return };
    let key = asked.key(Sets::Folder);
    let Some(path) = words.first().and_then(|word| word.resolve(&place.folders)) else {
        job.problem(
            &key,
            "This folder must be known before the job starts: use a full path, $HOME or $SCRATCH.",
        );
        return;
    };
    if !path.starts_with('/') {
        job.problem(&key, "Write the whole path.");
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
    request.output =
        Some(format!("{}/{name}-{number}.out", path.trim_end_matches('/').replace('%', "%%")));
    request.folder = Some(path.clone());
    job.folders.push(path);
}

/// Options that no question stands for: from a question that asks for them, or from a script that was brought along.
fn others(request: &mut Request, form: &Form, values: &Values<'_>, job: &mut Composed) {
    let question = form.that_sets(Sets::Other);
    if let Some((question, Value::Words(words))) =
        question.and_then(|one| Some((one, values.get(one.key.as_str())?)))
    {
        for word in words {
            let text = word.resolve(&std::collections::BTreeMap::new()).unwrap_or_default();
            match read_back::option(&text) {
                Some((option, _)) if read_back::is_said(request, &option) => {
                    let words = format!("{option} is asked for above; answer it there.");
                    job.problem(&question.key, words);
                }
                Some((option, value)) => request.others.push((option, value)),
                None => job.problem(&question.key, format!("“{text}” is no option of sbatch.")),
            }
        }
    }
    if let Some(body) = slots::whole_script(form, values) {
        for (option, value) in read_back::directives(&body) {
            if !read_back::is_said(request, &option) {
                request.others.push((option, value));
            }
        }
    }
}
