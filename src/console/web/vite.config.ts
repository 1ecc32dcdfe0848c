/** Builds the console into `node_modules/.cache/console/files`: every file gzipped, with a list of them for the server. */
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig, type Plugin } from 'vite'

const ROOT = import.meta.dirname
const OUTPUT = resolve(ROOT, '../../../node_modules/.cache/console/files')

/** Written by Vite; of what is inside, for the package's licences and the bill of materials. */
const LICENCES = '.vite/licences.json'

/** Moves the list of licences away from what is served. */
function licencesAside(): Plugin {
  return {
    name: 'licences-aside',
    apply: 'build',
    writeBundle() {
      const written = join(OUTPUT, LICENCES)
      renameSync(written, join(OUTPUT, '..', 'licences.json'))
      rmSync(dirname(written), { recursive: true })
    },
  }
}

/** Replaces each file by its gzipped form, and lists all in `files.json`. */
function gzipped(): Plugin {
  return {
    name: 'gzipped',
    apply: 'build',
    writeBundle() {
      const paths = readdirSync(OUTPUT, { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry => relative(OUTPUT, join(entry.parentPath, entry.name)))
      for (const path of paths) {
        const file = join(OUTPUT, path)
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }))
        rmSync(file)
      }
      writeFileSync(join(OUTPUT, 'files.json'), JSON.stringify(paths.sort()))
    },
  }
}

export default defineConfig({
  root: ROOT,
  base: '/console/',
  cacheDir: resolve(ROOT, '../../../node_modules/.cache/vite'),
  plugins: [svelte(), licencesAside(), gzipped()],
  build: {
    outDir: OUTPUT,
    emptyOutDir: true,
    target: 'es2022',
    // The policy allows images from ourselves and data: URLs, but no fonts or styles from data: URLs.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    modulePreload: { polyfill: false },
    license: { fileName: LICENCES },
  },
  // `vite dev --config src/console/web/vite.config.ts`: the front end from its sources, the APIs from a running server.
  server: { proxy: { '/api': 'http://127.0.0.1:8025', '/admin': 'http://127.0.0.1:8025' } },
})
