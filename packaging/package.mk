# One executable, and the Debian package around it.
VERSION := $(shell packaging/version)
INSIDE := dist/inside
BINARY := --bundle --format=cjs --platform=node --target=node24 --log-level=warning --minify-whitespace --minify-syntax --legal-comments=none

# Of images (src/content/media/resizing/codecs.ts).
CODECS := $(addprefix node_modules/@jsquash/,jpeg/codec/dec/mozjpeg_dec.wasm jpeg/codec/enc/mozjpeg_enc.wasm png/codec/pkg/squoosh_png_bg.wasm \
  webp/codec/dec/webp_dec.wasm webp/codec/enc/webp_enc.wasm)

# The version is inside: another commit makes another executable.
dist/.version: dist/.built FORCE
	@[ "$$(cat $@ 2>/dev/null)" = "$(VERSION)" ] || echo "$(VERSION)" >$@
FORCE:

# Where a module asks for its file, any name will do: what it wants from there is inside, and has the name alone.
dist/postroad: dist/.built dist/.version $(wildcard packaging/binary/*)
	@rm -rf $(INSIDE)
	@$(BIN)/esbuild src/main.ts $(THREADS) --outdir=$(INSIDE) --entry-names=[name] $(BINARY) $(DEFINE) --metafile=dist/program.json \
	  --define:import.meta.url='"file:///postroad/main.js"' \
	  --alias:better-sqlite3=./packaging/binary/better-sqlite3.cjs --alias:mailparser=./packaging/binary/mailparser.cjs
	@$(BIN)/esbuild packaging/binary/mailparser-inside.js --outfile=$(INSIDE)/mailparser.js $(BINARY) --metafile=dist/mailparser.json
	@$(BUILD_BROWSER) --outdir=$(INSIDE)
	@cp -r $(CONSOLE)/files $(INSIDE)/console
	@cp node_modules/better-sqlite3/prebuilds/linux-$$(node -p process.arch).node $(INSIDE)/better_sqlite3.node
	@cp $(CODECS) $(INSIDE)
	@packaging/binary/inject.sh $(INSIDE) $@
	@rm -rf $(INSIDE)

binary: dist/postroad ## one executable that needs no Node: dist/postroad

deb: dist/postroad ## Debian package: dist/postroad_VERSION_ARCHITECTURE.deb
	@packaging/debian/build.sh $(VERSION)

release: deb ## dist/release: package, executable, bill of materials (CycloneDX), SHA256SUMS; signed with RELEASE_KEY=FILE
	@packaging/release.sh $(VERSION)

# In a second folder, so that a path which got into a file is seen; with the packages of this one, but nothing that was built.
release-check: release ## build the release once more in another folder and say what differs
	@packaging/build-again.sh $(VERSION)

# A Debian 12 that the package test copies and boots: nothing beyond what every Debian has, and curl. It is kept, since making it takes
# longer than the test.
DEBIAN_TREE ?= $(HOME)/.cache/postroad/bookworm
export DEBIAN_TREE
$(DEBIAN_TREE):
	@mkdir -p $(dir $@); rm -rf $@.new
	@debootstrap --variant=minbase --include=systemd-sysv,dbus,ca-certificates,curl,man-db bookworm $@.new http://deb.debian.org/debian >$@.log
	@mv $@.new $@

test-package: dist/postroad build/.built $(TEST_NEEDS) $(DEBIAN_TREE) ## executable and package as a sysadmin meets them, under a real systemd (root; .ci/run installs what it needs)
	@DEB_COMPRESSION=1 packaging/debian/build.sh $(VERSION) >/dev/null
	$(BIN)/tap $(TAP_FLAGS) --jobs=1 --timeout=900 $(or $(ONLY),build/test/package/*.package.js)
