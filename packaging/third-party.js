// Prints the licences of what the executable holds of others, from Vite's account of what went into the console, and esbuild's of the rest:
//   node third-party.js CONSOLE_LICENCES METAFILE...
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const [consoleLicences, ...metafiles] = process.argv.slice(2)
const folders = new Set()
for (const metafile of metafiles)
  for (const input of Object.keys(JSON.parse(readFileSync(metafile, 'utf8')).inputs)) {
    const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0]
    if (folder !== undefined) folders.add(folder)
  }
folders.add('node_modules/better-sqlite3')

// Of the package, and of what was compiled into it.
const licenceOf = folder => {
  const file = readdirSync(folder).find(name => /^(licen[cs]e|copying)(\.|-|$)/i.test(name))
  const codec = join('codec', 'LICENSE.codec.md')
  const files = [file, codec].filter(name => name !== undefined && existsSync(join(folder, name)))
  return files.map(name => readFileSync(join(folder, name), 'utf8').trim()).join('\n\n')
}
const rule = '='.repeat(78)
for (const folder of [...folders].sort()) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  process.stdout.write(`${rule}\n${name} ${version}: ${license}\n\n${licenceOf(folder)}\n\n`)
}
for (const { name, version, identifier, text } of JSON.parse(readFileSync(consoleLicences, 'utf8')))
  if (!folders.has(join('node_modules', name)))
    process.stdout.write(`${rule}\n${name} ${version}: ${identifier}\n\n${(text ?? '').trim()}\n\n`)
// Data that was copied into the sources.
process.stdout.write(
  `${rule}\nData of caniemail.com: MIT\n\n${readFileSync('packaging/licences/caniemail.txt', 'utf8')}\n`,
)
// SQLite itself is in the public domain. Node's licence names all that Node holds.
const nodeLicence = ['../share/doc/nodejs/LICENSE', '../LICENSE']
  .map(path => join(dirname(process.execPath), path))
  .find(existsSync)
process.stdout.write(`${rule}\nNode.js ${process.version}\n\n`)
process.stdout.write(
  nodeLicence === undefined
    ? `https://github.com/nodejs/node/blob/${process.version}/LICENSE\n`
    : readFileSync(nodeLicence, 'utf8'),
)
