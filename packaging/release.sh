#!/bin/sh
# Makes what is published of a release in dist/release:  release.sh VERSION
# RELEASE_KEY: file with a private key in PEM (openssl genpkey -algorithm ed25519); with it SHA256SUMS is signed.
# `make release` built executable and package before. The same commit makes the same bytes (compare-releases.sh says what differs).
set -eu
cd "$(dirname "$0")/.."
version=$1
architecture=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
umask 022
out=dist/release
rm -rf "$out"
mkdir -p "$out"
cp "dist/postroad_${version}_$architecture.deb" "$out/"
install -m 755 dist/postroad "$out/postroad-$version-linux-$architecture"
node packaging/sbom.js "$version" node_modules/.cache/console/licences.json dist/program.json dist/mailparser.json >"$out/postroad-$version.cdx.json"
(cd "$out" && LC_ALL=C && export LC_ALL && sha256sum postroad* >SHA256SUMS)
if [ -n "${RELEASE_KEY:-}" ]; then
  openssl pkeyutl -sign -rawin -inkey "$RELEASE_KEY" -in "$out/SHA256SUMS" -out "$out/SHA256SUMS.sig"
  echo "signed; to verify: openssl pkeyutl -verify -rawin -pubin -inkey PUBLIC_KEY -in SHA256SUMS -sigfile SHA256SUMS.sig"
else
  echo 'not signed: RELEASE_KEY names no key'
fi
cat "$out/SHA256SUMS"
