# shellcheck shell=sh
# Environment of login shells (/etc/profile.d), of `ssh host command` (first line of ~/.bashrc) and of jobs (BASH_ENV).
export SCRATCH="${SCRATCH:-/scratch/$(id -un)}"
if [ -z "${PROJECT:-}" ]; then
  for group in $(id -Gn); do
    if [ -d "/project/$group" ]; then
      export PROJECT="/project/$group"
      break
    fi
  done
  unset group
fi
case :$PATH: in *:/harbour/code/bin:*) ;; *) PATH=$PATH:/harbour/code/bin ;; esac
# Debian's lmod.sh comes first in login shells and knows only its own folders, so the path is ours to say either way.
case :${MODULEPATH:-}: in *:/harbour/modules:*) ;; *) export MODULEPATH=/harbour/modules LMOD_PAGER=none ;; esac
if ! type module >/dev/null 2>&1; then
  # shellcheck source=/dev/null
  . /usr/share/lmod/lmod/init/bash
fi
