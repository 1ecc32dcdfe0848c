/** Entity tags of every representation that has one: 304 means that everything shown is the same. */
import t, { type Test } from 'tap'
import { openFeeds } from '../feeds/open-feeds.js'
import { tokenWith } from '../support/program/operators.js'

const REST = '/api/v1'
const ADMIN = '/api/admin/v1'
const SMALLEST_GIF = 'GIF89a\u0001\0\u0001\0\0\0\0,\0\0\0\0\u0001\0\u0001\0\0\u0002\u0002D\u0001\0;'

type Opened = Awaited<ReturnType<typeof open>>

/** A change to what the resource shows: of something derived, if it shows anything derived, otherwise an edit. */
interface Changed {
  readonly path: string
  /** What a person may edit, if the change before was none of that. */
  readonly edit?: object
  readonly change: () => unknown
}

async function open(t: Test) {
  const opened = await openFeeds(t)
  const owner = await tokenWith(opened, 'owner')
  const ask = (method: string, path: string, headers: Record<string, string> = {}, body?: object | Buffer) =>
    fetch(opened.baseUrl + path, {
      method,
      headers: {
        Authorization: `Bearer ${path.startsWith(ADMIN) ? owner : opened.key}`,
        'Content-Type': 'application/json',
        ...headers,
      },
      ...(body ? { body: body instanceof Buffer ? new Uint8Array(body) : JSON.stringify(body) } : {}),
    })
  return { ...opened, ask }
}

const CASES: Readonly<Record<string, (opened: Opened) => Promise<Changed>>> = {
  [`${REST}/lists/{id}`]: async ({ make }) => {
    const id = await make('/lists', { name: 'News' })
    const change = () => make('/contacts', { email: 'member@x.test', list_id: id })
    return { path: `/lists/${id}`, change, edit: { name: 'Weekly' } }
  },
  [`${REST}/tags/{id}`]: async ({ make, post }) => {
    const id = await make('/tags', { name: 'vip' })
    const contact = await make('/contacts', { email: 'tagged@x.test' })
    const change = () => post(`/tags/${id}/contacts`, { contact_ids: [contact] })
    return { path: `/tags/${id}`, change, edit: { name: 'gold' } }
  },
  [`${REST}/attributes/{id}`]: async ({ make, patch }) => {
    const id = await make('/attributes', { name: 'revenue', type: 'number' })
    return { path: `/attributes/${id}`, change: () => patch(`/attributes/${id}`, { label: 'Revenue' }) }
  },
  [`${REST}/contacts/{id}`]: async ({ make, patch }) => {
    const list = await make('/lists', { name: 'Old name' })
    const id = await make('/contacts', { email: 'una@x.test', list_id: list })
    const change = () => patch(`/lists/${list}`, { name: 'New name' })
    return { path: `/contacts/${id}`, change, edit: { first_name: 'Ann' } }
  },
  [`${REST}/segments/{id}`]: async ({ make, patch }) => {
    const id = await make('/segments', { name: 'Pro' })
    return { path: `/segments/${id}`, change: () => patch(`/segments/${id}`, { name: 'Paying' }) }
  },
  [`${REST}/campaigns/{id}`]: async ({ draft, change }) => {
    const id = await draft(['uwe@x.test'])
    const counted = [
      `update campaigns set opens = opens + 1, unique_opens = unique_opens + 1 where id = '${id}'`,
    ]
    return { path: `/campaigns/${id}`, change: () => change(counted), edit: { name: 'February' } }
  },
  [`${REST}/automations/{id}`]: async ({ make, post, patch }) => {
    const step = { step_type: 'delay', config: { duration: 1, unit: 'days' } }
    const id = await make('/automations', { name: 'A', trigger_type: 'manual', steps: [step] })
    await make('/contacts', { email: 'eve@x.test' })
    await patch(`/automations/${id}`, { status: 'active' })
    const change = () => post(`/automations/${id}/trigger`, { email: 'eve@x.test' })
    return { path: `/automations/${id}`, change, edit: { status: 'paused' } }
  },
  [`${REST}/feeds/{id}`]: async ({ makeFeed, change }) => {
    const id = await makeFeed()
    const failed = [
      `update feeds set failures = 2, last_error = 'the host did not answer' where id = '${id}'`,
    ]
    return { path: `/feeds/${id}`, change: () => change(failed), edit: { name: 'Journal' } }
  },
  [`${REST}/forms/{id}`]: async ({ make, patch }) => {
    const id = await make('/forms', { name: 'Sign-up' })
    return { path: `/forms/${id}`, change: () => patch(`/forms/${id}`, { title: 'Join us' }) }
  },
  [`${REST}/templates/{id}`]: async ({ make, patch }) => {
    const id = await make('/templates', { name: 'T', html: '<p>one</p>' })
    return { path: `/templates/${id}`, change: () => patch(`/templates/${id}`, { html: '<p>two</p>' }) }
  },
  [`${REST}/saved-blocks/{id}`]: async ({ make, patch }) => {
    const blocks = [{ id: 'a', type: 'text', content: { html: '<p>Hello</p>' } }]
    const id = await make('/saved-blocks', { name: 'Header', json_structure: { blocks } })
    return { path: `/saved-blocks/${id}`, change: () => patch(`/saved-blocks/${id}`, { name: 'Top' }) }
  },
  [`${REST}/media/{id}`]: async ({ ask, patch }) => {
    const image = Buffer.from(SMALLEST_GIF, 'latin1')
    const made = await ask('POST', `${REST}/media?file_name=a.gif`, { 'Content-Type': 'image/gif' }, image)
    const { data } = (await made.json()) as { data: { id: string } }
    return { path: `/media/${data.id}`, change: () => patch(`/media/${data.id}`, { alt_text: 'A dot' }) }
  },
  [`${ADMIN}/workspaces/{workspaceId}`]: async ({ ask, workspaceId }) => {
    const path = `/workspaces/${workspaceId}`
    return { path, change: () => ask('PATCH', ADMIN + path, {}, { hourly_limit: 50 }) }
  },
}

// proves: decisions: Added after a day's work > ETags cover everything that the
t.test(
  'whatever of a representation changes, the tag before gets no 304, and derived fields are no conflict',
  async t => {
    const opened = await open(t)
    const { ask, baseUrl } = opened
    const tagged: string[] = []
    for (const [document, base] of [
      [`${baseUrl}/openapi.json`, REST],
      [`${baseUrl}/admin/openapi.json`, ADMIN],
    ] as const) {
      const { paths } = (await (await fetch(document)).json()) as { paths: Record<string, { get?: object }> }
      for (const [path, { get }] of Object.entries(paths))
        if (JSON.stringify(get ?? {}).includes('If-None-Match')) tagged.push(base + path.replace(base, ''))
    }
    t.same(Object.keys(CASES).sort(), tagged.sort(), 'every representation with an ETag is tried')

    for (const [name, prepare] of Object.entries(CASES)) {
      const base = name.startsWith(ADMIN) ? ADMIN : REST
      const { path, change, edit } = await prepare(opened)
      const before = await ask('GET', base + path)
      const etag = before.headers.get('etag') ?? ''
      const shown = await before.text()
      t.equal((await ask('GET', base + path, { 'If-None-Match': etag })).status, 304, `${name}: unchanged`)
      await change()
      const after = await ask('GET', base + path, { 'If-None-Match': etag })
      t.equal(after.status, 200, `${name}: changed`)
      t.not(await after.text(), shown, `${name}: shows something else`)
      if (edit)
        t.equal(
          (await ask('PATCH', base + path, { 'If-Match': etag }, edit)).status,
          200,
          `${name}: no conflict`,
        )
    }
  },
)
