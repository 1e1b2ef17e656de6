//! What past runs used of what they had asked for, asked with one command for all of them.

use std::sync::Arc;
use std::time::Duration;

use super::queue::nonce;
use crate::slurm::accounting::{self, PastRun};
use crate::ssh::{Line, RemoteCommand, RunError, Urgency};

/// The accounting may take its time.
const WITHIN: Duration = Duration::from_secs(20);
/// No more jobs are asked for at a time.
pub const MOST: usize = 10;

/// Reads them; jobs that the accounting does not know are left out, and nothing beyond [`MOST`] is asked.
pub async fn past_use(line: &Arc<Line>, numbers: &[u64]) -> Result<Vec<PastRun>, RunError> {
    let (marks, fields) = (nonce()?, nonce()?);
    let numbers = &numbers[..numbers.len().min(MOST)];
    let Some(args) = accounting::past_args(&fields, numbers) else { return Ok(Vec::new()) };
    let command = RemoteCommand::new(accounting::PROGRAM).args(args).within(WITHIN);
    let batch = RemoteCommand::batch(&marks, &[command])?;
    let output = line.run(batch, Urgency::Background).await?;
    let part = output.parts(&marks).into_iter().next().flatten().ok_or(RunError::Lost)?;
    Ok(accounting::read_past(&part.stdout, &fields))
}
