/**
 * The file of `postroad apply`: TOML, or JSON if its name ends in `.json`.
 *
 * Every resource is known by its name; absent fields are left unchanged. Never contains secrets. Fails with a ConfigError that
 * names line and path.
 */
import { readFileSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import Type, { type Static } from 'typebox'
import { isTimezone, Settings } from '../../accounts/workspace-settings.js'
import { ATTRIBUTE_TYPES } from '../../audience/attributes/declared-values.js'
import { NewFormBody } from '../../audience/forms/form-schema.js'
import { ConditionsSchema } from '../../audience/segments/conditions.js'
import { ConfigError } from '../../config/faults.js'
import { nearestName } from '../../config/key-names.js'
import { parseToml } from '../../config/load.js'
import { AppError, describeError } from '../../core/errors.js'
import { ROLES } from '../../http/roles.js'
import { validator } from '../../http/validate.js'
import { EventName } from '../../webhooks/subscriptions/subscription-schema.js'

const strict = { additionalProperties: false }
const NullableText = Type.Union([Type.String({ maxLength: 2_048 }), Type.Null()])
const Name = Type.String({ minLength: 1, maxLength: 254 })

const Domain = Type.Object({ domain: Name, vouched: Type.Optional(Type.Boolean()) }, strict)

const Tag = Type.Object(
  { name: Name, color: Type.Optional(NullableText), description: Type.Optional(NullableText) },
  strict,
)

const List = Type.Object(
  {
    name: Name,
    type: Type.Optional(Type.Enum(['static', 'dynamic'])),
    description: Type.Optional(NullableText),
    conditions: Type.Optional(ConditionsSchema),
    public: Type.Optional(Type.Boolean()),
    double_opt_in: Type.Optional(Type.Boolean()),
  },
  strict,
)

const Attribute = Type.Object(
  {
    name: Name,
    type: Type.Enum([...ATTRIBUTE_TYPES]),
    label: Type.Optional(Type.Union([Type.String({ maxLength: 100 }), Type.Null()])),
  },
  strict,
)

const Template = Type.Object(
  {
    name: Name,
    description: Type.Optional(NullableText),
    html: Type.Optional(Type.String({ maxLength: 1_000_000 })),
    /** Relative to the file. */
    html_file: Type.Optional(Name),
  },
  strict,
)

const Webhook = Type.Object(
  {
    url: Type.String({ minLength: 1, maxLength: 2_048 }),
    events: Type.Array(EventName, { minItems: 1, maxItems: 100 }),
    status: Type.Optional(Type.Enum(['active', 'disabled'])),
  },
  strict,
)

const Form = Type.Object(
  {
    name: Name,
    title: Type.Optional(NullableText),
    description: Type.Optional(NullableText),
    lists: Type.Optional(Type.Array(Name, { maxItems: 20 })),
    fields: NewFormBody.properties.fields,
    redirect_url: Type.Optional(NullableText),
    double_opt_in: Type.Optional(Type.Boolean()),
  },
  strict,
)

const { name: _, ...optionalSettings } = Type.Partial(Settings).properties

export const SECTIONS = ['domains', 'attributes', 'tags', 'lists', 'templates', 'webhooks', 'forms'] as const
export type Section = (typeof SECTIONS)[number]

const many = <S extends Parameters<typeof Type.Array>[0]>(item: S) =>
  Type.Optional(Type.Array(item, { maxItems: 5_000 }))

const Workspace = Type.Object(
  {
    name: Name,
    ...optionalSettings,
    prune: Type.Optional(Type.Array(Type.Enum([...SECTIONS]))),
    domains: many(Domain),
    attributes: many(Attribute),
    tags: many(Tag),
    lists: many(List),
    templates: many(Template),
    webhooks: many(Webhook),
    forms: many(Form),
  },
  strict,
)

const Operator = Type.Object(
  {
    email: Name,
    name: Type.Optional(Type.String({ maxLength: 200 })),
    roles: Type.Optional(
      Type.Array(Type.Object({ role: Type.Enum([...ROLES]), workspace: Type.Optional(Name) }, strict), {
        minItems: 1,
        maxItems: 1_000,
      }),
    ),
    invite: Type.Optional(Type.Boolean()),
  },
  strict,
)

const State = Type.Object(
  {
    prune: Type.Optional(Type.Array(Type.Enum(['workspaces', 'operators']))),
    workspaces: many(Workspace),
    operators: many(Operator),
  },
  strict,
)

export type State = Static<typeof State>
export type WorkspaceState = Static<typeof Workspace>
export type OperatorState = Static<typeof Operator>

const checkState = validator(State, 'file')

/** @throws ConfigError */
export function readState(file: string): State {
  const text = readText(file)
  const isJson = file.endsWith('.json')
  const fail = (fault: string) => new ConfigError(file, [fault], isJson ? undefined : text)
  const written = isJson ? parseJson(file, text) : parseToml(file, text)
  let state: State
  try {
    state = checkState(cleared(written))
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw fail(faultOf(error))
  }
  const fault = findTimezoneFault(state) ?? findRepeated(state)
  if (fault !== undefined) throw fail(fault)
  return withFiles(state, file, fail)
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError(file, [`cannot be read: ${describeError(error)}`])
  }
}

function parseJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ConfigError(file, [`is not JSON: ${describeError(error)}`])
  }
}

/** Their texts are passed on unchanged. */
const AS_WRITTEN: ReadonlySet<string> = new Set(['conditions', 'fields'])

/** TOML has no null: an empty text clears a field. */
function cleared(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(cleared)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      name,
      field === '' ? null : AS_WRITTEN.has(name) ? field : cleared(field),
    ]),
  )
}

/** `workspaces.0.hourly_limt: unknown key, did you mean hourly_limit?` */
function faultOf({ message, path = 'file' }: AppError): string {
  const what = message.startsWith(`${path} `) ? message.slice(path.length + 1) : message
  if (what !== 'is not a known field') return `${path}: ${what}`
  const meant = nearestName(path.split('.').at(-1) ?? '', knownKeys(path.split('.').slice(0, -1)))
  return `${path}: unknown key${meant === undefined ? '' : `, did you mean ${meant}?`}`
}

interface Node {
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
}

function knownKeys(path: readonly string[]): string[] {
  let node: Node | undefined = State as unknown as Node
  for (const part of path) node = /^\d+$/.test(part) ? node?.items : node?.properties?.[part]
  return Object.keys(node?.properties ?? {})
}

/** The server checks it too, but only when the plan is applied. */
function findTimezoneFault({ workspaces = [] }: State): string | undefined {
  const at = workspaces.findIndex(({ timezone }) => timezone !== undefined && !isTimezone(timezone))
  return at < 0
    ? undefined
    : `workspaces.${at}.timezone: ${workspaces[at]?.timezone} is not an IANA time zone name`
}

/** @returns a fault if two entries of a section have the same name */
function findRepeated(state: State): string | undefined {
  const sections: [string, readonly string[]][] = [
    ['workspaces', (state.workspaces ?? []).map(one => one.name)],
    ['operators', (state.operators ?? []).map(one => one.email)],
  ]
  for (const [index, workspace] of (state.workspaces ?? []).entries())
    for (const section of SECTIONS)
      sections.push([
        `workspaces.${index}.${section}`,
        (workspace[section] ?? []).map(one =>
          'url' in one ? one.url : 'domain' in one ? one.domain : one.name,
        ),
      ])
  for (const [path, names] of sections) {
    const seen = new Set<string>()
    for (const [index, name] of names.entries()) {
      // Of attributes case counts, as in contacts.
      const key = path.endsWith('.attributes') ? name.trim() : name.toLowerCase()
      if (seen.has(key)) return `${path}.${index}: ${name} is described twice`
      seen.add(key)
    }
  }
  return undefined
}

/**
 * Reads the HTML files of templates. Only below the folder of the file: it may be somebody else's, and what it names is sent to the server,
 * where others can read it.
 */
function withFiles(state: State, file: string, fail: (fault: string) => ConfigError): State {
  if (!state.workspaces) return state
  const workspaces = state.workspaces.map((workspace, at) => {
    if (!workspace.templates) return workspace
    const templates = workspace.templates.map(({ html_file: htmlFile, ...template }, index) => {
      const path = `workspaces.${at}.templates.${index}.html_file`
      if (htmlFile === undefined) return template
      if (template.html !== undefined) throw fail(`${path}: give either html or html_file`)
      return { ...template, html: readBelow(dirname(file), htmlFile, fault => fail(`${path}: ${fault}`)) }
    })
    return { ...workspace, templates }
  })
  return { ...state, workspaces }
}

function readBelow(folder: string, name: string, fail: (fault: string) => ConfigError): string {
  let path: string
  try {
    // Links are followed first.
    path = realpathSync(resolve(folder, name))
    if (path.startsWith(join(realpathSync(folder), '/'))) return readFileSync(path, 'utf8')
  } catch (error) {
    throw fail(`cannot be read: ${describeError(error)}`)
  }
  throw fail(`${name} is outside ${folder}: put it beside the file or below`)
}
