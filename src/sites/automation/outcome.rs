//! The result of testing an automation host, and what to do about it.

/// The result of testing an automation host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutomationTestOutcome {
    Works,
    /// The key was accepted, but then the server wanted a second factor after all, without asking a question.
    NotEnrolled,
    KeyNotAccepted,
    /// The server closed the connection.
    Closed,
    AsksForSecondFactor,
    CommandRefused(String),
    /// Slurm was not found.
    NoSlurm,
}

/// What happened and what to do, one sentence each.
pub fn explain_outcome(outcome: &AutomationTestOutcome) -> Vec<String> {
    let sentences: &[&str] = match outcome {
        AutomationTestOutcome::Works => {
            &["The automation host works: the portal can run your commands without a second factor."]
        }
        AutomationTestOutcome::NotEnrolled => &[
            "The host accepted your SSH key, but your account doesn't have automation access yet.",
            "Ask the centre's support for automation access. If they've already approved it, wait: not all clusters \
             are updated at the same time.",
        ],
        AutomationTestOutcome::KeyNotAccepted => &[
            "The host rejected your SSH key.",
            "Check that the whole line, including the restrictions at the start, is on the centre's key page. A new \
             line can take half an hour to work.",
            "Also check that this portal really connects from the address in the line.",
        ],
        AutomationTestOutcome::Closed => &[
            "The host closed the connection before login.",
            "Some hosts do this for accounts without automation access, others when there are too many connections \
             at once. Wait a few minutes and try again, then ask the centre's support.",
        ],
        AutomationTestOutcome::AsksForSecondFactor => &[
            "The host asks for a second factor, like an ordinary login node.",
            "Either your account has no automation access, or the portal reached the ordinary login node. Check the \
             host name, then ask the centre's support.",
        ],
        AutomationTestOutcome::CommandRefused(command) => {
            return vec![
                format!("The program that your key is restricted to rejected this command: {command}"),
                "Restrict the key to a program that allows it, such as portolan-commands, by changing the line on the centre's \
                 key page."
                    .to_owned(),
            ];
        }
        AutomationTestOutcome::NoSlurm => &[
            "You're connected, but Slurm wasn't found on this host.",
            "Without Slurm it can only be used for files. Tell the centre's support that squeue isn't found there.",
        ],
    };
    sentences.iter().map(|sentence| (*sentence).to_owned()).collect()
}
