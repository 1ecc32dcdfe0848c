/**
 * Generates `config/postroad.toml`, `config/REFERENCE.md` and the output of `config show` from the schema.
 *
 * Called by `src/cli/write-generated.ts`, by the test that detects drift, and by the command line. Pure.
 */
import { stringify } from 'smol-toml'
import { nodeOf, type SchemaNode } from './schema/fields.js'
import { environmentName, isTableList } from './key-names.js'
import type { LoadedConfig } from './load.js'
import { isTable, type Table } from './read-tables.js'
import { RELOADED_KEYS } from './reload.js'
import type { ConfigSchema } from './schema/schema.js'

const WITHOUT_EFFECT = 'No effect in this version.'
const LINE_WIDTH = 100
/** Replaces secrets in `config show`. */
const HIDDEN = '********'

/** A table of the file: the top level, a section, or the tables of a list. */
interface Section {
  readonly path: readonly string[]
  readonly node: SchemaNode
  readonly isEffective: boolean
  readonly isList: boolean
}

function sectionsOf(
  node: SchemaNode,
  path: readonly string[],
  isEffective: boolean,
  isList: boolean,
): Section[] {
  const here = { path, node, isEffective: isEffective && node.effective !== false, isList }
  const below = Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    if (child.type === 'object') return sectionsOf(child, [...path, name], here.isEffective, isList)
    if (!isTableList(child)) return []
    const shape: SchemaNode = { ...child, ...child.items, description: child.description }
    return sectionsOf(shape, [...path, name], here.isEffective && child.effective !== false, true)
  })
  return [here, ...below]
}

function allSections(schema: ConfigSchema): Section[] {
  return sectionsOf(nodeOf(schema), [], true, false)
}

/** Keys directly in this section. */
function keysOf({ node }: Section): [name: string, node: SchemaNode][] {
  return Object.entries(node.properties ?? {}).filter(([, key]) => key.type !== 'object' && !isTableList(key))
}

/** A value in TOML; for strings, numbers, booleans and lists of them, JSON is valid TOML. */
function toToml(value: unknown): string {
  return Array.isArray(value) ? `[${value.map(toToml).join(', ')}]` : JSON.stringify(value)
}

function expectation(node: SchemaNode): string {
  return node.type === 'array' ? `list, each ${node.items?.expected ?? ''}` : (node.expected ?? '')
}

function comment(text: string): string {
  const lines: string[] = []
  let line = '#'
  for (const word of text.split(' ')) {
    if (line.length + word.length >= LINE_WIDTH) {
      lines.push(line)
      line = '#'
    }
    line += ` ${word}`
  }
  return [...lines, line].join('\n')
}

/** The configuration file with every key at its default, commented out so that changed defaults take effect on upgrade. */
export function commentedToml(schema: ConfigSchema): string {
  const head =
    'Postroad configuration (TOML). Lists every key with its default, commented out; a list of tables is shown with an ' +
    'example. Durations are written 90s, 5m, 1h30m, 3d; sizes 64KB, 25MB. Environment variables override keys: ' +
    'POSTROAD_MTA_RETRY_FIRST sets first in [mta.retry]. See REFERENCE.md for details. ' +
    'Generated from the schema (src/config/schema/schema.ts).'
  return `${comment(head)}\n\n${allSections(schema).map(sectionToml).join('\n\n')}\n`
}

function sectionToml(section: Section): string {
  const { path, node, isEffective, isList } = section
  const about = [node.description, isEffective ? '' : WITHOUT_EFFECT].filter(part => part !== '').join(' ')
  const name = path.join('.')
  const heading = path.length === 0 ? [] : [comment(about), isList ? `#[[${name}]]` : `[${name}]`]
  const keys = keysOf(section).map(([key, keyNode]) => keyToml(key, keyNode, section))
  return isList
    ? [...heading, ...keys].join('\n')
    : [heading.join('\n'), keys.join('\n\n')].filter(Boolean).join('\n')
}

function keyToml(name: string, node: SchemaNode, section: Section): string {
  const effect = section.isEffective && node.effective === false ? ` ${WITHOUT_EFFECT}` : ''
  const example = !section.isList && node.example !== undefined && node.default !== undefined
  const instance = example ? ` Example: ${toToml(node.example)}` : ''
  const notes = comment(`${node.description}${effect} (${expectation(node)})${instance}`)
  const isRequired = node.default === undefined && !section.isList
  const value = section.isList ? (node.example ?? node.default) : (node.default ?? node.example)
  return `${notes}\n${isRequired ? '' : '#'}${name} = ${toToml(value)}`
}

/** The reference page in Markdown. */
export function referenceMarkdown(schema: ConfigSchema): string {
  return `# Configuration reference

Generated from the schema (\`src/config/schema/schema.ts\`); do not edit. The file is TOML, by default
\`/etc/postroad/postroad.toml\`; \`--config FILE\` or \`POSTROAD_CONFIG\` names another.

- Durations: \`90s\`, \`5m\`, \`1h30m\`, \`3d\` (units ms, s, m, h, d, w; a bare \`0\` is allowed). Sizes: \`64KB\`, \`25MB\` (powers of 1,024).
- The environment variable of a key overrides the file. Lists are comma-separated; lists of tables are JSON
  (\`POSTROAD_MTA_ROUTES='[{"domain": "*", "host": "10.0.0.5"}]'\`).
- An unknown key or variable is an error. \`postroad config check\` reports all errors at once.
- On SIGHUP (\`systemctl reload postroad\`) a running server rereads the file and applies these keys (of a section, all its keys) at once: ${RELOADED_KEYS.map(
    key => `\`${key}\``,
  ).join(
    ', ',
  )}. It also reloads the certificate files. Other changes are logged as needing a restart; if the file has a fault,
  nothing changes.
- Keys marked "no effect in this version" are accepted and checked; \`serve\` warns if one is set.

${allSections(schema).map(sectionMarkdown).join('\n\n')}
`
}

function sectionMarkdown(section: Section): string {
  const { path, node, isEffective, isList } = section
  const name = path.join('.')
  const title = path.length === 0 ? 'Top level' : isList ? `\`[[${name}]]\`` : `\`[${name}]\``
  const variable = isList
    ? `Environment variable for the whole list, as JSON: \`${environmentName(path)}\``
    : ''
  const about = [node.description, isEffective ? '' : `**${WITHOUT_EFFECT}**`, variable]
    .filter(Boolean)
    .join(' ')
  const rows = keysOf(section).map(([key, keyNode]) => rowMarkdown(key, keyNode, section))
  if (rows.length === 0) return `## ${title}\n\n${about}`
  const header = isList
    ? '| Key | Value | Default | Description |'
    : '| Key | Value | Default | Description | Environment |'
  const rule = header.replace(/[^|]+/g, '---')
  return [`## ${title}`, ...(about === '' ? [] : [about]), [header, rule, ...rows].join('\n')].join('\n\n')
}

function rowMarkdown(name: string, node: SchemaNode, section: Section): string {
  const byDefault = node.default === undefined ? 'required' : `\`${toToml(node.default)}\``
  const effect = section.isEffective && node.effective === false ? ` **${WITHOUT_EFFECT}**` : ''
  const example = node.example === undefined ? '' : ` Example: \`${toToml(node.example)}\``
  const meaning = `${node.description}${effect}${example}`
  const cells = [`\`${name}\``, expectation(node), byDefault, meaning]
  if (!section.isList) cells.push(`\`${environmentName([...section.path, name])}\``)
  return `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

/** The effective configuration as TOML; it can be loaded again except for hidden secrets. */
export function showConfig(schema: ConfigSchema, { tables }: Pick<LoadedConfig, 'tables'>): string {
  return stringify(withoutSecrets(nodeOf(schema), tables))
}

export function withoutSecrets(node: SchemaNode, tables: Table): Table {
  return Object.fromEntries(
    Object.entries(tables).map(([name, value]) => {
      const key = node.properties?.[name]
      const items = key?.items
      if (key?.secret === 'always') return [name, value === '' ? '' : HIDDEN]
      if (key?.type === 'object' && isTable(value)) return [name, withoutSecrets(key, value)]
      if (items?.type !== 'object' || !Array.isArray(value)) return [name, value]
      return [name, value.filter(isTable).map(inner => withoutSecrets(items, inner))]
    }),
  )
}
