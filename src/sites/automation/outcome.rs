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
            &["The automation node works: the portal can run your commands without a second proof."]
        }
        AutomationTestOutcome::NotEnrolled => &[
            "The node took your key, but your account may not use it yet.",
            "Ask the centre's support for automation access; if they said yes already, wait: the nodes of different \
             clusters learn of it at different times.",
        ],
        AutomationTestOutcome::KeyNotAccepted => &[
            "The node did not take the key.",
            "Look whether the whole line, with its restrictions in front, is on the centre's key page, and give a new \
             line half an hour to spread.",
            "Look also whether this portal really connects from the address in the line.",
        ],
        AutomationTestOutcome::Closed => &[
            "The node ended the connection before anyone was signed in.",
            "Some nodes do this to accounts that have no automation access yet, others when too many connections come \
             at once. Wait some minutes, try once more, then ask the centre's support.",
        ],
        AutomationTestOutcome::AsksForSecondFactor => &[
            "The node asks for a second proof, as the ordinary sign-in does.",
            "Your account has no automation access there, or the portal reached the ordinary sign-in host: compare the \
             host's name, then ask the centre's support.",
        ],
        AutomationTestOutcome::CommandRefused(command) => {
            return vec![
                format!("The program that your key is bound to refused this command: {command}"),
                "Bind the key to a program that allows it, such as portolan-commands: change the line on the centre's \
                 key page."
                    .to_owned(),
            ];
        }
        AutomationTestOutcome::NoSlurm => &[
            "You are in, but the node does not find Slurm, the program that runs jobs.",
            "It can only be used for files then. Tell the centre's support that squeue is not found on it.",
        ],
    };
    sentences.iter().map(|sentence| (*sentence).to_owned()).collect()
}
