# shellcheck shell=bash
# Integration tests that get a second chance: source this file, it does nothing by itself.
#
#   run_integration_tests WORDS…   run them, then run each one that failed once more by itself; return 1 if one of
#                                  those fails again, or if the first run gives no clear list of failed tests
#   report_unsteady                name the tests that passed only the second time, then the totals of the run
#
# TEST_LOGS names a folder for what the tests print; it is emptied first.

# More failures than this aren't bad luck: nothing is run again.
MAX_RETRIES=20
# How long the copy of the output may lag behind the tests.
COPY_SECONDS=5
# Most of them wait for Slurm or a browser for most of their time, so more can run at once than there are cores.
IT_THREADS=$(($(nproc) * 2))
UNSTEADY=() # passed only the second time
BROKEN=()   # failed both times
IT_PASSED=0 # in the first run

run_integration_tests() {
  local first=$TEST_LOGS/first status=0 failed name names
  mkdir -p "$TEST_LOGS"
  rm -f "$TEST_LOGS"/*
  UNSTEADY=() BROKEN=()
  cargo_test_it "$first" "$@" || status=$?
  [ "$status" != 0 ] || return 0
  # cargo's 101 also stands for a build error. Only a closing line, and as many names as it counts, can be trusted.
  names=$(failed_tests "$first")
  if ! [[ $status = 101 && $(closing_line "$first") =~ ^'test result: FAILED. '([0-9]+)' passed; '([0-9]+)' failed;' ]] ||
    [ "$(wc -w <<<"$names")" != "${BASH_REMATCH[2]}" ]; then
    echo "The integration tests did not run to the end (a build error or a crash?), so none is run again." >&2
    return 1
  fi
  IT_PASSED=${BASH_REMATCH[1]} failed=${BASH_REMATCH[2]}
  if [ "$failed" -gt "$MAX_RETRIES" ]; then
    echo "$failed integration tests failed. With more than $MAX_RETRIES, none is run again." >&2
    return 1
  fi
  for name in $names; do
    echo "== running again, by itself: $name"
    if passes_alone "$name"; then UNSTEADY+=("$name"); else BROKEN+=("$name"); fi
  done
  [ ${#BROKEN[@]} != 0 ] || return 0
  for name in "${BROKEN[@]}"; do
    printf '\nfailed twice: %s\n  with the others:\n' "$name"
    failure_text "$first" "$name"
    echo "  by itself:"
    failure_text "$TEST_LOGS/$name" "$name"
  done
  report_unsteady
  return 1
}

# The answer must be one test that passed: a name that is not found is no failure to the runner.
passes_alone() { # NAME
  local log=$TEST_LOGS/$1
  cargo_test_it "$log" --exact "$1" --include-ignored --test-threads=1 || return 1
  [[ $(closing_line "$log") == 'test result: ok. 1 passed; 0 failed;'* ]]
}

report_unsteady() {
  local name
  [ $((${#UNSTEADY[@]} + ${#BROKEN[@]})) != 0 ] || return 0
  for name in "${UNSTEADY[@]}"; do
    printf '\nunsteady %s\n' "$name"
    failure_text "$TEST_LOGS/first" "$name"
  done
  if [ ${#UNSTEADY[@]} != 0 ]; then
    printf '\nUnsteady tests: %d. Each failed in the first run, passed when run again by itself, and counts as passed:\n' \
      ${#UNSTEADY[@]}
  fi
  echo "it: $((IT_PASSED + ${#UNSTEADY[@]})) passed, ${#BROKEN[@]} failed"
}

# Shows what the tests print while they run, and keeps a copy. Returns cargo's exit code.
cargo_test_it() { # LOG WORDS…
  local log=$1 pipe=$1.pipe status=0 copier
  shift
  mkfifo "$pipe"
  tee "$log" <"$pipe" &
  copier=$!
  RUST_TEST_THREADS=${RUST_TEST_THREADS:-$IT_THREADS} cargo test --locked --test it -- "$@" >"$pipe" || status=$?
  # It ends when nobody can write to it any more. What a crashed test left running could, so don't wait long.
  timeout "$COPY_SECONDS" tail -s 0.01 --pid="$copier" -f /dev/null || kill "$copier" 2>/dev/null || true
  rm -f "$pipe"
  return "$status"
}

without_colours() { # LOG
  sed 's/\x1b\[[0-9;]*m//g; s/\x1b(B//g' "$1"
}

# The runner's result, if that is the last thing in the log. A crashed test program leaves none.
closing_line() { # LOG
  without_colours "$1" | awk 'NF { last = $0 } END { if (last ~ /^test result: /) print last }'
}

# The names below the last "failures:"; tests may print that word, too, but they do so before.
failed_tests() { # LOG
  without_colours "$1" | awk '
    /^failures:$/ { list = ""; next }
    /^    [A-Za-z0-9_:]+$/ { list = list $1 "\n" }
    END { printf "%s", list }'
}

# What a test printed when it failed. The bar keeps other programs from reading it as results; all of it is in the log.
failure_text() { # LOG NAME
  without_colours "$1" | awk -v name="$2" -v limit=60 -v log_file="$1" '
    { line[NR] = $0 }
    $0 == "---- " name " stdout ----" && !start { start = NR }
    /^failures:$/ { end = NR }
    END {
      if (!start || !end) print "    | (it printed nothing of its own; see the output above)"
      for (at = start + 1; start && at < end && line[at] !~ /^---- [A-Za-z0-9_:]+ stdout ----$/; at++) {
        if (line[at] == "") { gap = 1; continue }
        if (++shown > limit) { print "    | (and so on, in " log_file ")"; break }
        if (gap && shown > 1) print "    |"
        gap = 0
        print "    | " line[at]
      }
    }'
}
