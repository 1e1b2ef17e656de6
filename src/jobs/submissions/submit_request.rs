//! Rejects requests that no cluster could accept.

use crate::cluster::ClusterAccountId;
use crate::store::submissions::SubmitRequest;

/// Nobody writes longer scripts.
pub const MAX_SCRIPT_BYTES: usize = 512 * 1024;
const MAX_NAME_LEN: usize = 200;
const MAX_FORM_TOKEN_LEN: usize = 100;
const MAX_FOLDERS: usize = 20;
const MAX_FOLDER_LEN: usize = 1000;

/// Why no cluster could accept a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitRequestError {
    /// The form token is missing.
    #[error("The form is incomplete. Reload the page and try again.")]
    Form,
    /// The script does not start with `#!`.
    #[error("The script must start with a line such as #!/bin/bash.")]
    NoShebang,
    #[error("The script is longer than 512 kB. Move its data to a file on the cluster.")]
    TooLong,
    #[error("The script has Windows line endings, which Slurm rejects. Save it with Unix line endings (LF).")]
    WindowsLineEnds,
    /// The script contains a zero byte, so it is not text.
    #[error("The script contains a zero byte. Copy it again as plain text.")]
    ZeroByte,
    /// Slurm or the shell would misread the job name.
    #[error("The job name must be one line of at most 200 characters.")]
    Name,
    /// A folder is not a plain absolute path.
    #[error("Folders must be full paths that start with a slash, one per line.")]
    Folder,
}

impl SubmitRequest {
    /// The queue it goes to.
    pub const fn account_id(&self) -> ClusterAccountId {
        ClusterAccountId { person: self.person, cluster: self.cluster }
    }

    pub fn validate(&self) -> Result<(), SubmitRequestError> {
        let is_line = |text: &str, most: usize| {
            !text.trim().is_empty() && text.len() <= most && !text.chars().any(char::is_control)
        };
        let is_folder = |folder: &String| folder.starts_with('/') && is_line(folder, MAX_FOLDER_LEN);
        let first_wrong = [
            (is_line(&self.form_token, MAX_FORM_TOKEN_LEN), SubmitRequestError::Form),
            (self.script.len() <= MAX_SCRIPT_BYTES, SubmitRequestError::TooLong),
            (self.script.starts_with("#!"), SubmitRequestError::NoShebang),
            (!self.script.contains('\r'), SubmitRequestError::WindowsLineEnds),
            (!self.script.contains('\0'), SubmitRequestError::ZeroByte),
            (is_line(&self.job_name, MAX_NAME_LEN), SubmitRequestError::Name),
            (self.folders.len() <= MAX_FOLDERS && self.folders.iter().all(is_folder), SubmitRequestError::Folder),
        ]
        .into_iter()
        .find(|(is_good, _)| !is_good);
        first_wrong.map_or(Ok(()), |(_, unfit)| Err(unfit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ClusterId, PersonId};

    fn order() -> SubmitRequest {
        SubmitRequest {
            person: PersonId(1),
            cluster: ClusterId(1),
            form_token: "f".into(),
            script: "#!/bin/bash\ntrue\n".into(),
            job_name: "it's <b>".into(),
            folders: vec!["/scratch/a b".into()],
            recipe: String::new(),
            recipe_version: None,
            recipe_id: None,
            answers: String::new(),
            sweep: String::new(),
        }
    }

    #[test]
    fn what_cannot_be_submitted_is_said_at_once() {
        assert_eq!(order().validate(), Ok(()));
        let script = |script: &str| SubmitRequest { script: script.into(), ..order() }.validate();
        assert_eq!(script("true\n"), Err(SubmitRequestError::NoShebang));
        assert_eq!(script("#!/bin/bash\r\ntrue\r\n"), Err(SubmitRequestError::WindowsLineEnds));
        assert_eq!(script("#!/bin/bash\n\0"), Err(SubmitRequestError::ZeroByte));
        assert_eq!(script(&format!("#!{}", "x".repeat(MAX_SCRIPT_BYTES))), Err(SubmitRequestError::TooLong));
        let name = |name: &str| SubmitRequest { job_name: name.into(), ..order() }.validate();
        for bad in ["", " ", "a\nb", &"x".repeat(201)] {
            assert_eq!(name(bad), Err(SubmitRequestError::Name), "{bad}");
        }
        for bad in ["", "relative", "/a\nb"] {
            let order = SubmitRequest { folders: vec![bad.into()], ..order() };
            assert_eq!(order.validate(), Err(SubmitRequestError::Folder), "{bad}");
        }
        assert_eq!(SubmitRequest { form_token: String::new(), ..order() }.validate(), Err(SubmitRequestError::Form));
    }
}
