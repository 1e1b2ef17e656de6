# shellcheck shell=bash
# What `script/test --changed` runs: source this file after steps.sh, it does nothing by itself.
#
#   comparison_base [BASE]     the commit to compare with
#   changed_files COMMIT       paths that differ from it, with what is not committed or not known to git yet
#   affected_tests <PATHS      the files of tests/it that affected_tests.txt names for them, one per line
#   check_affected_tests       fail if that table names a test that is not there
#   list_tests FILE…           the full names of all tests in these files
#
# AFFECTED_TESTS names the table. Paths are relative to the project's folder, which is the current one.

AFFECTED_TESTS=${AFFECTED_TESTS:-$REPO/script/lib/affected_tests.txt}

# Without a name: where main was published, else main, else the last commit. With nothing new there: the one before.
comparison_base() { # [BASE]
  local ref base='' refs=('main@{upstream}' main HEAD)
  [ -z "${1:-}" ] || refs=("$1")
  for ref in "${refs[@]}"; do
    if base=$(git merge-base "$ref" HEAD 2>/dev/null); then break; fi
  done
  [ -n "$base" ] || die "git finds nothing that '${1:-HEAD}' and this commit have in common."
  if [ -z "${1:-}" ] && [ -z "$(changed_files "$base")" ]; then
    base=$(git rev-parse --verify --quiet HEAD~1) || die "There is no earlier commit to compare with."
  fi
  echo "$base"
}

changed_files() { # COMMIT
  # Others may be using the same index.
  GIT_OPTIONAL_LOCKS=0 git -c core.quotePath=false diff --name-only --no-renames "$1" -- || return
  git -c core.quotePath=false ls-files --others --exclude-standard
}

affected_tests() {
  local path
  read_table
  {
    echo house
    while IFS= read -r path; do tests_of "$path"; done
  } | tr ' ' '\n' | sed '/^-\{0,1\}$/d' | sort -u
}

tests_of() { # PATH
  local row name=${1#tests/it/}
  name=${name%%/*}
  name=${name%.rs}
  # A test is affected by its own files, as long as it is there.
  case $1 in
    tests/it/support/* | tests/it/main.rs) ;;
    tests/it/*)
      [ ! -e "tests/it/$name.rs" ] || echo "$name"
      return 0
      ;;
  esac
  for row in "${!PATTERNS[@]}"; do
    # shellcheck disable=SC2053 # the right side is a pattern
    if [[ $1 == ${PATTERNS[row]} ]]; then
      echo "${TESTS[row]}"
      return 0
    fi
  done
  die "No row of $AFFECTED_TESTS fits $1."
}

# Rows as PATTERNS and TESTS, with the names of lists replaced by what is in them.
read_table() {
  local pattern words word tests
  declare -A lists=()
  PATTERNS=() TESTS=()
  while read -r pattern words; do
    case $pattern in '' | '#'*) continue ;; esac
    tests=
    for word in $words; do
      [[ $word != @* || -n ${lists[$word]:-} ]] || die "$AFFECTED_TESTS uses the list $word before it says what is in it."
      tests+=" ${lists[$word]:-$word}"
    done
    [ -n "$tests" ] || die "$AFFECTED_TESTS names no tests for $pattern. Write '-' for none."
    case $pattern in
      @[a-z]*) lists[$pattern]+=$tests ;;
      *) PATTERNS+=("$pattern") TESTS+=("$tests") ;;
    esac
  done <"$AFFECTED_TESTS"
}

check_affected_tests() {
  local name missing=
  read_table
  for name in $(printf '%s\n' "${TESTS[@]}" | tr ' ' '\n' | sort -u); do
    case $name in - | selftest) continue ;; esac
    [ -e "tests/it/$name.rs" ] || missing+=" $name"
  done
  [ -z "$missing" ] || die "$AFFECTED_TESTS names tests that tests/it does not have:$missing. Were they renamed?"
}

list_tests() { # FILE…
  cargo test --quiet --locked --test it -- --list --format terse |
    awk -v files="$*" '
      BEGIN { split(files, all, " "); for (at in all) wanted[all[at]] }
      sub(/: test$/, "") { file = $0; sub(/::.*/, "", file); if (file in wanted) print }'
}
