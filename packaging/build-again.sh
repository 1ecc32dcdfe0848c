#!/usr/bin/env bash
# Builds the release of this commit in a folder of its own and compares it with dist/release:  build-again.sh VERSION
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/postroad-release-XXXXXX")
trap 'rm -rf "$work"' EXIT
git diff --quiet HEAD -- || echo 'there are changes that are not committed; the second build is of the commit'
git archive HEAD | tar -x -C "$work"
cp -r --reflink=auto node_modules "$work/node_modules"
rm -rf "$work/node_modules/.cache"
touch "$work/node_modules/.installed"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
make -C "$work" --no-print-directory release VERSION="$1" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
packaging/compare-releases.sh dist/release "$work/dist/release"
