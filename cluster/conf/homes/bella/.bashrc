# shellcheck shell=bash
# Prints a welcome for every shell, as some people have it: programs that only want the output of a command get it too.
echo "*************************************************"
echo "*  Welcome back, Bella!  $(date +'%A, %d %B %Y')"
echo "*  Remember: job 1 failed yesterday {\"jobs\": []}"
echo "*************************************************"
echo "bash: warning: setlocale: LC_ALL: cannot change locale (en_CA.UTF-8)" >&2
