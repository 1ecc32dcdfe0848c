#!/usr/bin/env bash
# Says what differs between two folders of `make release`:  compare-releases.sh FOLDER OTHER. Exit status 1 if anything does.
set -euo pipefail
one=$1 other=$2
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints where two files differ.
where() {
  cmp -l "$1" "$2" 2>/dev/null | awk 'NR == 1 { first = $1 } { last = $1; count += 1 } END { print "  " count " octets differ, from " first " to " last }' || true
}

for file in $( (cd "$one" && ls; cd "$OLDPWD" && cd "$other" && ls) | LC_ALL=C sort -u); do
  case $file in SHA256SUMS*) continue ;; esac
  if [ ! -e "$one/$file" ] || [ ! -e "$other/$file" ]; then echo "$file: only in one"; status=1; continue; fi
  if cmp -s "$one/$file" "$other/$file"; then echo "$file: the same"; continue; fi
  status=1
  echo "$file: differs"
  case $file in
    *.deb)
      dpkg-deb -R "$one/$file" "$work/one"; dpkg-deb -R "$other/$file" "$work/other"
      diff -rq "$work/one" "$work/other" | sed 's/^/  /' || true
      diff <(dpkg-deb -c "$one/$file") <(dpkg-deb -c "$other/$file") | sed 's/^/  /' || true
      rm -rf "$work/one" "$work/other" ;;
    *.json) diff "$one/$file" "$other/$file" | head -20 || true ;;
    *) where "$one/$file" "$other/$file" ;;
  esac
done
exit $status
