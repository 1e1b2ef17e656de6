#!/bin/sh
# Root, on the node, before a job: its folder on local scratch ($SLURM_TMPDIR).
dir=/localscratch/$SLURM_JOB_USER.$SLURM_JOB_ID.0
mkdir -p "$dir" && chown "$SLURM_JOB_UID" "$dir" && chmod 700 "$dir"
