#!/bin/bash
#SBATCH --job-name=train
#SBATCH --time=00:05:00
#SBATCH --cpus-per-task=1
#SBATCH --mem=500M
#SBATCH --output=%x-%j.out
# Trains the example network; put train.py beside this file, submit with: sbatch train.sh [OPTIONS OF train.py]
module load python scipy-stack
python train.py --logdir "$SCRATCH/runs/$SLURM_JOB_ID" --mlruns "$SCRATCH/mlruns" "$@"
