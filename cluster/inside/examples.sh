# shellcheck shell=bash
# What newcomers try on their first morning: /project/examples for all to read, and a copy of the scripts in every home.

install_examples() {
  local to=/project/examples
  install -d -m 755 /project "$to"
  # only when it is new here: making it takes longer than looking
  if [ ! -s "$to/moons.tar.gz" ] || [ "$CODE/examples/halfmoons/__init__.py" -nt "$to/moons.tar.gz" ]; then
    /usr/bin/python3 "$CODE/tools/examples.py" "$CODE/examples" "$to"
  fi
  install -m 644 "$CODE"/examples/{learn.py,train.py,train.sh} "$to"
}

# once only, as what people change in their homes stays
give_examples() { # NAME HOME
  [ -e "$2/examples" ] || install -D -m 644 -o "$1" -g "$1" -t "$2/examples" "$CODE"/examples/{learn.py,train.py,train.sh}
}
