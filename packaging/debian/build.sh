#!/bin/sh
# Makes the Debian package of dist/postroad:  build.sh VERSION
# The same commit makes the same package.
set -eu
cd "$(dirname "$0")/../.."
version=$1
architecture=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y package.json)}
export SOURCE_DATE_EPOCH
root=dist/deb
rm -rf "$root"
umask 022

put() { install -D -m "$1" "$2" "$root/$3"; }
# The unit of an installation from source, with the paths of the package.
unit() {
  mkdir -p "$root/lib/systemd/system"
  sed -e 's|/opt/postroad/dist/node /opt/postroad/dist/main.js|/usr/bin/postroad|g' \
    -e 's|/opt/postroad/systemd/start-notified|/usr/lib/postroad/start-notified|g' \
    -e 's|file:/opt/postroad/README.md|man:postroad(1)|g' "systemd/$1" >"$root/lib/systemd/system/$1"
  if grep -n /opt/ "$root/lib/systemd/system/$1" >&2; then echo "$1: a path of an installation from source is left" >&2; exit 1; fi
}

put 755 dist/postroad usr/bin/postroad
put 755 systemd/start-notified usr/lib/postroad/start-notified
for one in systemd/*.service systemd/*.timer; do unit "${one#systemd/}"; done
put 644 systemd/postroad.sysusers.conf usr/lib/sysusers.d/postroad.conf
put 644 systemd/postroad.tmpfiles.conf usr/lib/tmpfiles.d/postroad.conf
# postinst copies it to /etc/postroad on the first installation. It is no conffile: one that changed here and there would stop upgrades.
put 644 config/starter.toml usr/share/postroad/postroad.toml
install -d -m 750 "$root/etc/postroad"

doc=$root/usr/share/doc/postroad
mkdir -p "$doc" "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions" \
  "$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d" "$root/usr/share/lintian/overrides"
dist/postroad man | gzip -9n >"$root/usr/share/man/man1/postroad.1.gz"
dist/postroad completion bash >"$root/usr/share/bash-completion/completions/postroad"
dist/postroad completion zsh >"$root/usr/share/zsh/vendor-completions/_postroad"
dist/postroad completion fish >"$root/usr/share/fish/vendor_completions.d/postroad.fish"
cp packaging/debian/copyright "$doc/copyright"
node packaging/third-party.js node_modules/.cache/console/licences.json dist/program.json dist/mailparser.json >"$doc/third-party-licences.txt"
gzip -9n "$doc/third-party-licences.txt"
gzip -9nc CHANGELOG.md >"$doc/NEWS.gz"
node packaging/documentation.js "$doc"
gzip -9nc >"$doc/changelog.gz" <<END
postroad ($version) stable; urgency=medium

  * What changed is told in NEWS.gz.

 -- Postroad <postroad@localhost>  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
cp packaging/debian/lintian-overrides "$root/usr/share/lintian/overrides/postroad"
find "$root" -type f ! -perm /111 ! -path "$root/etc/*" -exec chmod 644 {} +
find "$root" -type d ! -path "$root/etc/*" -exec chmod 755 {} +

mkdir -p "$root/DEBIAN"
for script in preinst postinst prerm postrm; do
  if [ -f "packaging/debian/$script" ]; then install -m 755 "packaging/debian/$script" "$root/DEBIAN/$script"; fi
done
(cd "$root" && find usr lib -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
# As dpkg-gencontrol counts it: what du says depends on the file system.
size=$(find "$root" -path "$root/DEBIAN" -prune -o -type f -printf '%s\n' -o -printf '1\n' | awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }')
sed -e "s|@VERSION@|$version|" -e "s|@ARCHITECTURE@|$architecture|" \
  -e "s|@SIZE@|$size|" packaging/debian/control >"$root/DEBIAN/control"
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
# One thread: what xz writes depends on whether there are several.
dpkg-deb --root-owner-group --threads-max=1 -Zxz -z"${DEB_COMPRESSION:-6}" --build "$root" "dist/postroad_${version}_$architecture.deb"
rm -rf "$root"
