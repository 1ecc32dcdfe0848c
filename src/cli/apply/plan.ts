/**
 * The plan of `postroad apply`: the difference between the described state and the one the API returns.
 *
 * `makePlan` only reads. A planned change calls the API when it is applied; changes stand in an order in which whatever one needs exists by
 * then. Fields that the file does not give are left alone.
 */
import { AppError } from '../../core/errors.js'
import { readDomainName } from '../../deliverability/domains/domains.js'
import type { Api, ApiClient } from '../api.js'
import { segment } from '../options.js'
import { afterOf, differences, type Fields, type PlannedChange } from './change.js'
import { planOperators } from './plan-operators.js'
import { SECTIONS, type Section, type State, type WorkspaceState } from './state-file.js'

/** A record as the API returns it. */
type Found = Fields & { readonly id: string }

const MAX_READ = 100_000

export interface PlanOptions {
  /** Deletes what others use as well. */
  readonly force: boolean
}

/** @throws AppError conflict if the state cannot be reached, and as the API does */
export async function makePlan(api: Api, state: State, options: PlanOptions): Promise<PlannedChange[]> {
  const existing = await api.admin.list<Found & { name: string }>('/workspaces', {}, MAX_READ)
  const ids = new Map(existing.map(({ id, name }) => [name.toLowerCase(), id]))
  const changes: PlannedChange[] = []
  const deletions: PlannedChange[] = []
  for (const workspace of state.workspaces ?? []) {
    const found = existing.find(({ name }) => name.toLowerCase() === workspace.name.toLowerCase())
    const planned = await planWorkspace(api, workspace, found, ids, options)
    changes.push(...planned.filter(({ act }) => act !== 'delete'))
    // Forms before the lists they use.
    deletions.unshift(...planned.filter(({ act }) => act === 'delete').reverse())
  }
  if (state.operators || state.prune?.includes('operators'))
    for (const change of await planOperators(api, state, existing, ids))
      (change.act === 'delete' ? deletions : changes).push(change)
  if (state.prune?.includes('workspaces')) {
    const kept = new Set((state.workspaces ?? []).map(({ name }) => name.toLowerCase()))
    for (const { id, name } of existing.filter(one => !kept.has(one.name.toLowerCase())))
      deletions.push({
        act: 'delete',
        what: 'workspace',
        name,
        fields: {},
        async apply() {
          await api.admin.send('DELETE', `/workspaces/${id}`)
        },
      })
  }
  return [...changes, ...deletions]
}

async function planWorkspace(
  api: Api,
  workspace: WorkspaceState,
  found: Found | undefined,
  ids: Map<string, string>,
  { force }: PlanOptions,
): Promise<PlannedChange[]> {
  const { prune = [], lists = [], forms = [] } = workspace
  const settings = Object.fromEntries(
    Object.entries(workspace).filter(
      ([name]) => name !== 'prune' && !(SECTIONS as readonly string[]).includes(name),
    ),
  )
  if (typeof settings['brand_color'] === 'string')
    settings['brand_color'] = settings['brand_color'].toLowerCase()
  const { name } = workspace
  const fields = differences(settings, found)
  const planned: PlannedChange[] = []
  if (!found)
    planned.push({
      act: 'create',
      what: 'workspace',
      name,
      fields,
      async apply() {
        const made = await api.admin.send<Found>('POST', '/workspaces', settings)
        ids.set(name.toLowerCase(), made.id)
      },
    })
  else if (Object.keys(fields).length > 0)
    planned.push({
      act: 'change',
      what: 'workspace',
      name,
      fields,
      async apply() {
        await api.admin.send('PATCH', `/workspaces/${found.id}`, afterOf(fields))
      },
    })
  const place: Place = {
    api,
    name,
    isNew: !found,
    force,
    /** Known at the latest when the workspace was created. */
    workspaceId: () => ids.get(name.toLowerCase()) ?? '',
    lists: new Map(),
  }
  for (const section of SECTIONS)
    planned.push(...(await planSection(place, section, workspace, prune.includes(section))))
  const known = new Set([...place.lists.keys(), ...lists.map(list => list.name.trim())])
  for (const form of forms)
    for (const list of form.lists ?? []) if (!known.has(list.trim())) throw noList(name, list, form.name)
  return planned
}

interface Place {
  readonly api: Api
  readonly name: string
  readonly isNew: boolean
  readonly force: boolean
  readonly workspaceId: () => string
  /** Ids of lists by name, new ones once they are created. */
  readonly lists: Map<string, string>
}

/** How one kind of resource is read, compared and written. */
interface Kind {
  readonly what: string
  /** Field that names it. */
  readonly key: string
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly isCaseSensitive?: true
  /** Whether a field cannot get this value later. */
  readonly isFixed?: (field: string, after: unknown) => boolean
  /** Whether lists omit fields, so that each one has to be read. */
  readonly isReadSingly?: true
  /** Whether others may use it, so that it is only deleted with `force`. */
  readonly isUsed?: true
  /** The fields as the file would give them, from a record of the API. */
  readonly shown?: (found: Found, place: Place) => Fields
  /** The fields as the API takes them. @param id undefined for a new one */
  readonly body?: (fields: Fields, place: Place) => Fields
  readonly create?: (place: Place, fields: Fields) => Promise<Found>
  /** Instead of PATCH. */
  readonly change?: (place: Place, id: string) => Promise<unknown>
  readonly remove?: (rest: ApiClient, id: string) => Promise<unknown>
}

const KINDS: Readonly<Record<Section, Kind>> = {
  domains: {
    what: 'domain',
    key: 'domain',
    path: '/domains',
    isFixed: (field, after) => field === 'vouched' && after !== true,
    change: ({ api }, id) => api.admin.send('POST', `/domains/${segment(id)}/vouch`),
    create: ({ api, workspaceId }, { domain, vouched }) =>
      api.admin.send<Found>('POST', '/domains', {
        domain,
        workspace_id: workspaceId(),
        ...(vouched === true ? { vouch: true } : {}),
      }),
  },
  attributes: { what: 'attribute', key: 'name', path: '/attributes', isCaseSensitive: true },
  tags: { what: 'tag', key: 'name', path: '/tags', isUsed: true },
  lists: {
    what: 'list',
    key: 'name',
    path: '/lists',
    isCaseSensitive: true,
    isUsed: true,
    isFixed: field => field === 'type',
  },
  templates: {
    what: 'template',
    key: 'name',
    path: '/templates',
    isCaseSensitive: true,
    isReadSingly: true,
    isUsed: true,
  },
  webhooks: {
    what: 'webhook',
    key: 'name',
    path: '/webhooks',
    query: { status: 'all' },
    isCaseSensitive: true,
    shown: found => ({ ...found, name: webhookName(found['targetUrl'], found['event']) }),
    body: ({ status }) => ({ status }),
    async create({ api, workspaceId }, { url, event, status }) {
      const rest = api.inWorkspace(workspaceId())
      const made = await rest.send<Found>('POST', '/webhooks/triggers', { targetUrl: url, event })
      if (status === 'disabled') await rest.send('PATCH', `/webhooks/${made.id}`, { status })
      return made
    },
    remove: (rest, id) => rest.send('DELETE', '/webhooks/triggers', undefined, { id }),
  },
  forms: {
    what: 'form',
    key: 'name',
    path: '/forms',
    isCaseSensitive: true,
    shown: (found, { lists }) => {
      const names = new Map([...lists].map(([name, id]) => [id, name]))
      const listIds = found['list_ids'] as readonly string[]
      const fields = found['fields'] as readonly (Fields & { options: readonly string[] })[]
      return {
        ...found,
        lists: listIds.map(id => names.get(id) ?? id),
        // Only a select has options.
        fields: fields.map(({ options, ...field }) => (options.length > 0 ? { ...field, options } : field)),
      }
    },
    body: ({ lists: names, ...fields }, { lists, name }) => ({
      ...fields,
      ...(names === undefined
        ? {}
        : {
            list_ids: (names as readonly string[]).map(list => {
              const id = lists.get(list)
              if (id === undefined) throw noList(name, list, String(fields['name']))
              return id
            }),
          }),
    }),
  },
}

function noList(workspace: string, list: string, form: string): AppError {
  return new AppError('not_found', `workspace ${workspace} has no list ${list}, which the form ${form} names`)
}

function webhookName(url: unknown, event: unknown): string {
  return `${hrefOf(String(url))} ${String(event)}`
}

/** URLs that differ only in their spelling are equal. */
function hrefOf(url: string): string {
  return URL.canParse(url) ? new URL(url).href : url
}

async function planSection(
  place: Place,
  section: Section,
  workspace: WorkspaceState,
  isPruned: boolean,
): Promise<PlannedChange[]> {
  const wanted = wantedOf(section, workspace)
  const isNamedByForms = section === 'lists' && workspace.forms !== undefined
  if (wanted.length === 0 && !isPruned && !isNamedByForms) return []
  const kind = KINDS[section]
  const { what, key } = kind
  const shown: NonNullable<Kind['shown']> = kind.shown ?? (one => one)
  const listPath = section === 'webhooks' ? '/webhooks/triggers' : kind.path
  const found = place.isNew
    ? []
    : await place.api.inWorkspace(place.workspaceId()).list<Found>(listPath, kind.query ?? {}, MAX_READ)
  if (section === 'lists') for (const { id, name } of found) place.lists.set(String(name), id)
  const nameOf = (fields: Fields) =>
    kind.isCaseSensitive ? String(fields[key]) : String(fields[key]).toLowerCase()
  const existing = found.map(one => ({ id: one.id, fields: shown(one, place) }))
  const at = { what, workspace: place.name }
  const rest = () => place.api.inWorkspace(place.workspaceId())
  const planned: PlannedChange[] = []
  for (const fields of wanted) {
    const name = String(fields[key])
    const same = existing.filter(one => nameOf(one.fields) === nameOf(fields))
    const [known] = same
    if (same.length > 1)
      throw new AppError(
        'conflict',
        `workspace ${place.name} has ${same.length} ${section} named ${name}; rename all but one of them first`,
      )
    if (!known) {
      planned.push({
        act: 'create',
        ...at,
        name,
        fields: differences(fields, undefined),
        async apply() {
          const body = () => kind.body?.(fields, place) ?? fields
          const made = await (kind.create?.(place, fields) ?? rest().send<Found>('POST', kind.path, body()))
          if (section === 'lists') place.lists.set(name, made.id)
        },
      })
      continue
    }
    const current = kind.isReadSingly
      ? await rest().get<Found>(`${kind.path}/${segment(known.id)}`)
      : known.fields
    const changed = differences(without(fields, [key, 'url', 'event']), current)
    const names = Object.keys(changed)
    if (names.length === 0) continue
    const fixed = names.find(one => kind.isFixed?.(one, fields[one]))
    if (fixed !== undefined)
      throw new AppError(
        'conflict',
        `${fixed} of the ${what} ${name} in workspace ${place.name} cannot be changed; delete it first`,
      )
    planned.push({
      act: 'change',
      ...at,
      name,
      fields: changed,
      async apply() {
        const after = afterOf(changed)
        if (kind.change) await kind.change(place, known.id)
        else
          await rest().send('PATCH', `${kind.path}/${segment(known.id)}`, kind.body?.(after, place) ?? after)
      },
    })
  }
  const kept = new Set(wanted.map(nameOf))
  for (const { id, fields } of isPruned ? existing.filter(one => !kept.has(nameOf(one.fields))) : [])
    planned.push({
      act: 'delete',
      ...at,
      name: String(fields[key]),
      fields: {},
      async apply() {
        const query = kind.isUsed && place.force ? { force: 'true' } : {}
        await (kind.remove?.(rest(), id) ??
          rest().send('DELETE', `${kind.path}/${segment(id)}`, undefined, query))
      },
    })
  return planned
}

/** The described resources of a section, with fields as the API returns them. */
function wantedOf(section: Section, workspace: WorkspaceState): Fields[] {
  switch (section) {
    case 'domains':
      return (workspace.domains ?? []).map(one => ({ ...one, domain: readDomainName(one.domain) }))
    case 'webhooks':
      return (workspace.webhooks ?? []).flatMap(({ url, events, ...rest }) =>
        [...new Set(events)].map(event => ({ ...rest, name: webhookName(url, event), url, event })),
      )
    case 'forms':
      return (workspace.forms ?? []).map(form => ({
        ...trimmed(form),
        ...(form.lists ? { lists: [...new Set(form.lists.map(list => list.trim()))] } : {}),
        ...(form.fields ? { fields: form.fields.map(completeField) } : {}),
        ...(typeof form.redirect_url === 'string' ? { redirect_url: hrefOf(form.redirect_url) } : {}),
      }))
    case 'tags':
      return (workspace.tags ?? []).map(tag => ({
        ...trimmed(tag),
        ...(typeof tag.color === 'string' ? { color: tag.color.toLowerCase() } : {}),
      }))
    case 'attributes':
    case 'lists':
      return (workspace[section] ?? []).map(trimmed)
    default:
      return workspace[section] ?? []
  }
}

/** Names and descriptions as the API stores them. */
function trimmed(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' ? value.trim() || (name === 'name' ? value : null) : value,
    ]),
  )
}

/** A field of a form with its defaults. */
function completeField(field: Fields): Fields {
  const name = String(field['name']).replace(/^attributes\./, '')
  return { type: 'text', required: false, ...field, name, label: String(field['label']).trim() }
}

function without(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
}
