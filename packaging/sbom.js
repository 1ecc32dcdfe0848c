/**
 * Prints a bill of materials (CycloneDX 1.6, JSON) of the executable:  node packaging/sbom.js VERSION CONSOLE_LICENCES METAFILE...
 *
 * Lists what esbuild and Vite put into it, by the lock file: version, licence, digest as npm publishes it. Node.js and SQLite, which packages
 * bring along, are entries of their own. The same commit makes the same bytes: the time is that of SOURCE_DATE_EPOCH. Fails: a package
 * that the lock file does not list ends the build.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const [version, consoleLicences, ...metafiles] = process.argv.slice(2)
if (metafiles.length === 0)
  throw new Error('usage: node packaging/sbom.js VERSION CONSOLE_LICENCES METAFILE...')
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))

const folders = new Set(['node_modules/better-sqlite3', `node_modules/node-linux-${process.arch}`])
for (const metafile of metafiles)
  for (const input of Object.keys(JSON.parse(readFileSync(metafile, 'utf8')).inputs)) {
    const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0]
    if (folder !== undefined) folders.add(folder)
  }
for (const { name } of JSON.parse(readFileSync(consoleLicences, 'utf8'))) folders.add(`node_modules/${name}`)

const npm = [...folders].sort().map(folder => {
  const locked = packages[folder]
  if (locked === undefined) throw new Error(`${folder} is not in package-lock.json`)
  const name = /(?:@[^/]+\/)?[^/]+$/.exec(folder)[0]
  const [scope, bare] = name.startsWith('@') ? name.split('/') : [undefined, name]
  const purl = `pkg:npm/${scope === undefined ? '' : `${encodeURIComponent(scope)}/`}${bare}@${locked.version}`
  return {
    type: 'library',
    'bom-ref': `${purl}#${folder}`,
    ...(scope === undefined ? {} : { group: scope }),
    name: bare,
    version: locked.version,
    ...(locked.license === undefined ? {} : { licenses: licencesOf(locked.license) }),
    ...(locked.integrity === undefined ? {} : { hashes: hashesOf(locked.integrity) }),
    purl,
    ...(locked.resolved === undefined
      ? {}
      : { externalReferences: [{ type: 'distribution', url: locked.resolved }] }),
  }
})
const others = [
  {
    type: 'application',
    'bom-ref': `pkg:generic/node@${process.versions.node}`,
    name: 'node',
    version: process.versions.node,
    licenses: [{ license: { id: 'MIT' } }],
    purl: `pkg:generic/node@${process.versions.node}`,
    externalReferences: [{ type: 'website', url: 'https://nodejs.org/' }],
  },
  ...(await sqliteInside()),
]
const components = [...npm, ...others]
const reference = `pkg:generic/postroad@${version}`
const digest = createHash('sha256')
  .update(JSON.stringify([version, components]))
  .digest('hex')
const epoch = Number(process.env.SOURCE_DATE_EPOCH)
if (!Number.isFinite(epoch)) throw new Error('SOURCE_DATE_EPOCH is not set')

process.stdout.write(
  `${JSON.stringify(
    {
      $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      serialNumber: `urn:uuid:${uuidOf(digest)}`,
      version: 1,
      metadata: {
        timestamp: new Date(epoch * 1_000).toISOString().replace('.000Z', 'Z'),
        component: {
          type: 'application',
          'bom-ref': reference,
          name: 'postroad',
          version,
          licenses: [{ license: { id: 'Apache-2.0' } }],
          purl: reference,
        },
      },
      components,
      dependencies: [{ ref: reference, dependsOn: components.map(one => one['bom-ref']) }],
    },
    null,
    2,
  )}\n`,
)

/** Of the addon, which is asked. */
async function sqliteInside() {
  const { default: Database } = await import('better-sqlite3')
  const handle = new Database(':memory:')
  const found = handle.prepare('select sqlite_version()').pluck().get()
  handle.close()
  const purl = `pkg:generic/sqlite@${found}`
  return [
    {
      ...{ type: 'library', 'bom-ref': purl, name: 'sqlite', version: found },
      ...{ licenses: [{ license: { name: 'Public Domain' } }], purl },
      externalReferences: [{ type: 'website', url: 'https://sqlite.org/' }],
    },
  ]
}

/** An SPDX id, or an expression of several. */
function licencesOf(text) {
  return /[ ()]/.test(text) ? [{ expression: text.replace(/^\((.*)\)$/, '$1') }] : [{ license: { id: text } }]
}

/** Of npm's `sha512-BASE64`. */
function hashesOf(integrity) {
  const [algorithm, base64] = integrity.split('-')
  return [{ alg: algorithm.replace(/^sha/, 'SHA-'), content: Buffer.from(base64, 'base64').toString('hex') }]
}

/** Version 8 (RFC 9562): of our own making, from a digest. */
function uuidOf(hex) {
  const variant = ((Number.parseInt(hex[16], 16) & 3) | 8).toString(16)
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-')
}
