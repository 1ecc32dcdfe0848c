#!/bin/sh
# Makes one executable of Node and the folder of what goes inside:  inject.sh FOLDER EXECUTABLE
# FOLDER holds main.js, the program; all else in it are files that the program asks for by name (src/world/embedded/).
set -eu
folder=$1 executable=$2
assets=$(cd "$folder" && find . -type f ! -name main.js ! -name meta.json | sed 's|^\./||' | LC_ALL=C sort)
{
  printf '{"main": "%s/main.js", "output": "%s.blob", "disableExperimentalSEAWarning": true, "useCodeCache": true, "assets": {' "$folder" "$executable"
  separator=
  for file in $assets; do
    printf '%s"%s": "%s/%s"' "$separator" "$file" "$folder" "$file"
    separator=', '
  done
  printf '}}'
} >"$executable.json"
# The code cache depends on V8's random numbers; their seed is the one flag that it may have been made with and still be used without.
node --random-seed=1 --experimental-sea-config "$executable.json" >"$executable.log" 2>&1 || { cat "$executable.log" >&2; exit 1; }
# A new file, since Node's own may be a link to what others use. Symbols are a tenth of it, and nobody reads them.
rm -f "$executable.new"
cp --reflink=auto "$(node -p process.execPath)" "$executable.new"
chmod 755 "$executable.new"
if command -v strip >/dev/null; then strip "$executable.new"; fi
node_modules/.bin/postject "$executable.new" NODE_SEA_BLOB "$executable.blob" \
  --sentinel-fuse NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2 >"$executable.log" 2>&1 || { cat "$executable.log" >&2; exit 1; }
rm -f "$executable.blob" "$executable.json" "$executable.log"
mv "$executable.new" "$executable"
