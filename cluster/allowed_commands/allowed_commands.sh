#!/usr/bin/env bash
# A forced command as centres offer it for their robot nodes. One script under several names: the name decides which
# commands it lets through. It keeps the habits of the real ones, which programs have to live with:
# the command is split into words and nothing else (no quotes, pipes, variables), and a rejection exits 0.
name=$(basename "$0")
command=${SSH_ORIGINAL_COMMAND:-}

allows() { # NAME…: is this script one of them, or the one that allows everything?
  [[ " allowed_commands.sh $* " == *" $name "* ]]
}

case $command in
  ls* | cat* | cd* | echo* | uname* | id* | groups*) allowed=yes ;;
  mv* | cp* | rm* | mkdir*) allows file_commands.sh && allowed=yes ;;
  python*) allows python_commands.sh && allowed=yes ;;
  git*) allows git_commands.sh && allowed=yes ;;
  tar* | dar* | gzip* | zip* | bzip2*) allows archiving_commands.sh && allowed=yes ;;
  # sshd says where its sftp server is, and that differs between distributions
  rsync* | scp* | /usr/lib/openssh/sftp-server* | /usr/libexec/openssh/sftp-server*)
    allows transfer_commands.sh && allowed=yes ;;
  squeue* | scancel* | sbatch* | scontrol* | sq*) allows slurm_commands.sh && allowed=yes ;;
esac

if [ "${allowed:-}" = yes ]; then
  # shellcheck disable=SC2086 # split, as the real ones do
  $command
else
  echo "Command rejected by $name: $command"
fi
