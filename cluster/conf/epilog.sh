#!/bin/sh
# Root, on the node, after a job.
[ -z "$SLURM_JOB_ID" ] || rm -rf "/localscratch/$SLURM_JOB_USER.$SLURM_JOB_ID.0"
