/** Paging by cursor over HTTP: every list that the two APIs describe, those of a few rows included. */
import t from 'tap'
import {
  ADMIN_DOCUMENT,
  pathWith,
  readOperations,
  REST_DOCUMENT,
  type Operation,
} from '../support/api/api-document.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'

interface Page {
  readonly data: readonly unknown[]
  readonly pagination: { readonly total: number; readonly next_cursor: string | null }
}

const isList = ({ method, responses }: Operation) =>
  method === 'GET' &&
  responses['200']?.content['application/json']?.schema?.properties?.['pagination'] !== undefined

const CONDITIONS = { match: 'all', rules: [{ field: 'email', operator: 'contains', value: 'x.example' }] }

async function open(t: Parameters<typeof openTestAppliance>[0]) {
  const appliance = await openTestAppliance(t)
  const { key } = appliance
  const token = await tokenWith(appliance, 'owner')
  const add = async (path: string, body: object) => {
    const answer = await appliance.post(`/api/v1${path}`, body, { key })
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }
  return { appliance, token, add }
}

/** Three of everything that a key can create. @returns the ids that paths name, by path */
async function fill({ appliance, add }: Awaited<ReturnType<typeof open>>) {
  const last: Record<string, string> = {}
  for (const at of [1, 2, 3]) {
    const list = await add('/lists', { name: `List ${at}` })
    const other = await add('/lists', { name: `Other ${at}` })
    const tag = await add('/tags', { name: `Tag ${at}` })
    const segment = await add('/segments', { name: `Segment ${at}`, conditions: CONDITIONS })
    const template = await add('/templates', { name: `Template ${at}`, html: '<p>Hello</p>' })
    for (const name of ['Second', 'Third'])
      await appliance.patch(
        `/api/v1/templates/${template.id}`,
        { name: `${name} ${at}`, html: `<p>${name}</p>` },
        { key: appliance.key },
      )
    await add('/saved-blocks', {
      name: `Block ${at}`,
      json_structure: { blocks: [{ id: 'a', type: 'text', content: { html: 'Hello' } }] },
    })
    const contact = await add('/contacts', { email: `c${at}@x.example`, list_id: list.id })
    last['first list'] ??= list.id
    await add(`/lists/${last['first list']}/members`, { contact_ids: [contact.id] })
    await add(`/lists/${other.id}/members`, { contact_ids: [contact.id] })
    last['first tag'] ??= tag.id
    await add(`/tags/${last['first tag']}/contacts`, { contact_ids: [contact.id] })
    await add('/domains', { domain: `d${at}.x.example` })
    await add('/forms', { name: `Form ${at}`, list_ids: [list.id] })
    const campaign = await add('/campaigns', {
      name: `Campaign ${at}`,
      subject: 'Hello',
      from_email: 'shop@shared.test',
      template_id: template.id,
      list_id: list.id,
    })
    const automation = await add('/automations', { name: `Automation ${at}`, trigger_type: 'manual' })
    const webhook = await add('/webhooks/triggers', {
      event: 'email.sent',
      targetUrl: `https://hooks.x.example/${at}`,
    })
    await add('/suppressions', { email: `s${at}@x.example` })
    await appliance.send(appliance.key, {
      to: `c${at}@x.example`,
      from_email: 'shop@shared.test',
      subject: 'Hello',
      text: 'Hello',
    })
    Object.assign(last, {
      '/lists': last['first list'],
      '/tags': last['first tag'],
      '/segments': segment.id,
      '/templates': template.id,
      '/campaigns': campaign.id,
      '/automations': automation.id,
      '/webhooks': webhook.id,
      '/contacts': contact.id,
    })
  }
  return last
}

/** Lists that have at least two rows after `fill`; others are only asked for what every list has. */
const FILLED = new Set([
  ...[
    'listContacts',
    'listDuplicateContacts',
    'listLists',
    'listListMembers',
    'listTags',
    'listTaggedContacts',
  ],
  ...['listSegments', 'listSegmentContacts', 'listTemplates', 'listTemplateVersions', 'listDomains'],
  ...['listForms', 'listCampaigns', 'listAutomations', 'listWebhooks', 'listSuppressions', 'listEmails'],
  ...['listJobs', 'listAllWebhooks', 'listAllCampaigns', 'listDomainsOfWorkspaces', 'listCapturedMail'],
])

// proves: decisions: Added after the whole contract > Idempotency-Key is accepted on every
t.test('every list that the APIs describe is read by cursor to the rows that it has by offset', async t => {
  const opened = await open(t)
  const { appliance, token } = opened
  const ids = await fill(opened)
  const walked = new Set<string>()
  for (const [document, key] of [
    [REST_DOCUMENT, appliance.key],
    [ADMIN_DOCUMENT, token],
  ] as const)
    for (const operation of (await readOperations(appliance.baseUrl, document)).filter(isList)) {
      const { name, operationId, parameters } = operation
      const takes = parameters.filter(one => one.in === 'query').map(one => one.name)
      if (!takes.includes('limit')) continue
      t.ok(takes.includes('after'), `${name} takes after`)
      const [, resource = ''] = /^\/api(?:\/admin)?\/v1(\/[^/]+)/.exec(operation.path) ?? []
      const path = pathWith(operation, () => ids[resource] ?? 'none')
      const query = parameters.some(one => one.name === 'workspace_id' && one.required)
        ? `workspace_id=${appliance.workspaceId}&`
        : ''
      const read = async (page: string) =>
        (await appliance.get(`${path}?${query}${page}`, { key })).body as Page
      const whole = await read('limit=1000')
      if (!Array.isArray(whole.data)) {
        t.notOk(FILLED.has(operationId), `${name}: ${JSON.stringify(whole)}`)
        continue
      }
      t.match(await read('after=nonsense'), { error: { path: 'after' } }, `${name} refuses what is no cursor`)
      const rows: unknown[] = []
      const totals = new Set<number>()
      for (let after = ''; rows.length <= whole.data.length;) {
        const page = await read(`limit=1${after}`)
        rows.push(...page.data)
        totals.add(page.pagination.total)
        if (page.pagination.next_cursor === null) break
        after = `&after=${encodeURIComponent(page.pagination.next_cursor)}`
      }
      t.same(withoutTimes(rows), withoutTimes(whole.data), `${name} by cursor`)
      // A search counts its first page only.
      if (operationId !== 'searchMessages')
        t.same([...totals], [whole.pagination.total], `${name} says one total`)
      if (rows.length > 1) walked.add(operationId)
    }
  t.same(
    [...FILLED].filter(one => !walked.has(one)),
    [],
    'no list was walked that has one page only',
  )
})

/** Without moments, which pass between two requests. */
function withoutTimes(rows: readonly unknown[]): unknown {
  return JSON.parse(
    JSON.stringify(rows, (name, value: unknown) => (/_at$|_ms$|uptime|age/.test(name) ? 0 : value)),
  )
}
