//! What there is to say while a job has no output.

use crate::format;
use crate::slurm::job::JobState;

/// A job that has printed nothing for this long, in seconds, is said to do something that takes long.
const LONG_SILENCE_SECONDS: u64 = 60;

/// Why there is no folder for the output, which depends on whether this cluster's Slurm would have created it.
pub fn explain_missing_folder(folder: &str, is_over: bool, creates_folders: Option<bool>) -> String {
    let sentence = match (creates_folders, is_over) {
        (Some(false), true) => {
            "It may have been deleted or renamed. If it didn't exist when the job started, the output was lost, because this version of Slurm doesn't create output folders. Create the folder before you resubmit."
        }
        (Some(false), false) => {
            "This version of Slurm doesn't create output folders. The job will fail as soon as it starts, so create the folder now or resubmit with another one."
        }
        (Some(true), true) => "It was moved or deleted, or Slurm wasn't allowed to create it.",
        (Some(true), false) => {
            "Slurm creates it when the job starts, unless it isn't allowed to. It may also be on a node's local disk, which the portal can't reach."
        }
        (None, true) => {
            "It was moved or deleted, or the job couldn't write any output: not every version of Slurm creates output folders."
        }
        (None, false) => {
            "Not every version of Slurm creates output folders. If the job fails as soon as it starts, create the folder and resubmit."
        }
    };
    format!("The folder {folder} doesn't exist. {sentence}")
}

/// What a job that has not started is doing.
pub fn describe_wait(seconds: Option<u64>) -> String {
    let since =
        seconds.map_or_else(String::new, |seconds| format!(" It was submitted {} ago.", format::duration(seconds)));
    format!("The job hasn't started.{since} Its output will appear here automatically.")
}

/// What a job that has started and printed nothing is doing, and what may take so long.
pub fn describe_silence(state: JobState, seconds: Option<u64>) -> String {
    let since = seconds.map_or_else(String::new, |seconds| format!(" for {}", format::duration(seconds)));
    match state {
        JobState::Configuring => {
            format!("Slurm has been preparing the job's nodes{since}. The script starts after that.")
        }
        JobState::Suspended => "The job is suspended, so it isn't doing anything. Slurm resumes it later.".to_owned(),
        JobState::Completing => "The job has ended, and Slurm is cleaning up after it.".to_owned(),
        _ if seconds.is_some_and(|seconds| seconds < LONG_SILENCE_SECONDS) => format!(
            "The job has been running{since} and hasn't printed anything. Loading modules and creating a Python \
             environment come first."
        ),
        _ => format!(
            "The job has been running{since} and hasn't printed anything. Installing packages, copying data and loading \
             a model can take several minutes. Many programs also buffer their output; run Python with -u to see it \
             immediately."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slurm_that_creates_no_folders_is_said_not_to() {
        for is_over in [true, false] {
            let told = |creates| explain_missing_folder("/home/a/logs", is_over, creates);
            assert!(told(Some(false)).contains("doesn't create output folders"));
            for creates in [Some(true), None] {
                assert!(!told(creates).contains("doesn't create output folders"), "{}", told(creates));
            }
        }
    }

    #[test]
    fn a_silent_job_says_what_it_is_doing() {
        let words = describe_silence(JobState::Running, Some(20));
        assert!(words.starts_with("The job has been running for 20 s") && words.contains("Loading modules"), "{words}");
        let words = describe_silence(JobState::Running, Some(300));
        assert!(words.contains("for 5 min") && words.contains("Installing packages"), "{words}");
        assert!(describe_silence(JobState::Suspended, Some(300)).contains("suspended"));
        assert!(describe_silence(JobState::Configuring, None).contains("preparing"));
        assert!(describe_wait(Some(90)).contains("It was submitted 1 min"), "{}", describe_wait(Some(90)));
        assert!(!describe_wait(None).contains("submitted"));
    }
}
