#!/bin/sh
# The user, before every task; "export" lines on stdout become part of the task's environment.
user=$(id -un)
echo "export SLURM_TMPDIR=/localscratch/$user.$SLURM_JOB_ID.0"
echo "export SCRATCH=/scratch/$user"
echo "export PROJECT=/project/$SLURM_JOB_ACCOUNT"
echo "export BASH_ENV=/harbour/code/conf/profile.sh"
